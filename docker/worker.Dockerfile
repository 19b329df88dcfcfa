# The worker. Build from the repository's root:
#   docker build -f docker/worker.Dockerfile -t credence-worker .          (TORCH=cuda for GPUs)
# The first stage equals that of api.Dockerfile byte for byte, so that both use one build of it.

# ---- environment: pinned packages in /opt/credence ----
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm
FROM ${PYTHON_IMAGE} AS environment
# cpu; or cuda, the package index's default build with NVIDIA's libraries (7 GB more).
ARG TORCH=cpu
# To install from another place: the URL of a folder of wheels, and its host.
ARG PIP_FIND_LINKS=
ARG PIP_TRUSTED_HOST=
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
RUN python3 -m venv --without-pip /opt/credence
COPY docker/requirements.lock docker/torch.lock docker/cuda.lock docker/build.lock ./
# Dependencies first, so that a change of the source does not install them again. Each file must have
# a sum in the locks. PyTorch's page has only torch's CPU build, and nothing else is looked for there.
RUN --mount=type=cache,target=/root/.cache/pip \
    install() { python3 -m pip --python /opt/credence/bin/python install --quiet --no-compile --require-hashes --no-deps "$@"; } \
    && if [ "$TORCH" = cpu ]; then \
           install --no-index --find-links "${PIP_FIND_LINKS:-https://download.pytorch.org/whl/cpu/torch/}" -r torch.lock; \
       else install -r cuda.lock; fi \
    && install -r requirements.lock -r build.lock
# Then what nobody needs here goes: headers, tests, torch's build tools, Arrow's RPC, plotly's Python
# (pages use its script). The rest is compiled, since the root file system is read-only.
RUN cd /opt/credence/lib/python3.11/site-packages \
    && rm -rf torch/include torch/share torch/test torch/lib/*test.so pyarrow/include pyarrow/src pyarrow/*flight* \
    && find torch/bin -type f ! -name torch_shm_manager -delete \
    && find plotly -mindepth 1 -maxdepth 1 ! -name __init__.py ! -name package_data -exec rm -rf {} + \
    && find . -type d -name tests -prune -exec rm -rf {} + \
    && (/opt/credence/bin/python -m compileall -qq -j 0 . || true)   # some packages hold templates
COPY . .
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -m pip --python /opt/credence/bin/python install --quiet --no-deps --no-build-isolation ./credence ./credence/scoring . \
    && cd / && /opt/credence/bin/python -c 'import app.main, boto3, credence.cli, kombu.transport.redis, psycopg, torch.distributed.run, worker.main'

# ---- training: what only baselines need, in a folder of its own, so that the images share the rest ----
FROM environment AS training
COPY docker/training.lock ./
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -m pip install --quiet --require-hashes --no-deps --target /opt/training -r training.lock \
    && cd /opt/training && rm -rf bin && find . -type d -name tests -prune -exec rm -rf {} + \
    && echo /opt/training > /opt/training.pth \
    && PYTHONPATH=/opt/training /opt/credence/bin/python -c 'import sklearn.ensemble, sklearn.impute, sklearn.model_selection, statsforecast.models'

# ---- the image ----
FROM ${PYTHON_IMAGE}
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/credence credence \
    && install -d -o credence -g credence -m 700 /var/lib/credence
COPY --from=environment /opt/credence /opt/credence
COPY --from=training /opt/training /opt/training
COPY --from=training /opt/training.pth /opt/credence/lib/python3.11/site-packages/
COPY docker/healthcheck.py /opt/healthcheck.py
ENV PATH=/opt/credence/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PYTHONSAFEPATH=1 \
    CREDENCE_DATA_DIR=/var/lib/credence CREDENCE_LOG_FORMAT=json
USER credence
WORKDIR /var/lib/credence
VOLUME /var/lib/credence
EXPOSE 9101
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "-P", "/opt/healthcheck.py", "worker"]
ENTRYPOINT ["credence"]
CMD ["worker"]
