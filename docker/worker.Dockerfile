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
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_CONSTRAINT=/src/requirements.lock
WORKDIR /src
RUN python3 -m venv --without-pip /opt/credence
COPY pyproject.toml requirements.lock ./
COPY credence/pyproject.toml credence/
COPY credence/scoring/pyproject.toml credence/scoring/
# Dependencies first, so that a change of the source does not install them again.
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -c 'import tomllib; print(*(name for file in ("pyproject.toml", "credence/pyproject.toml", "credence/scoring/pyproject.toml") for name in tomllib.load(open(file, "rb"))["project"]["dependencies"] if not name.startswith("credence-")), sep="\n")' \
        > dependencies.txt \
    && if [ "$TORCH" = cpu ] && [ -z "$PIP_FIND_LINKS" ]; then \
           export PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu; fi \
    && python3 -m pip --python /opt/credence/bin/python install --quiet -r dependencies.txt \
    && cd /opt/credence/lib/python3.11/site-packages \
    && rm -rf torch/include torch/share torch/test torch/lib/*test.so pyarrow/include pyarrow/tests pyarrow/src \
    && find . -type d -name tests -path './numpy/*' -prune -exec rm -rf {} +
COPY . .
RUN --mount=type=cache,target=/root/.cache/pip \
    python3 -m pip --python /opt/credence/bin/python install --quiet --no-deps ./credence ./credence/scoring . \
    && cd / && /opt/credence/bin/python -c 'import app.main, boto3, credence.cli, kombu.transport.redis, psycopg, torch.distributed.run, worker.main'

# ---- the image ----
FROM ${PYTHON_IMAGE}
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/credence credence \
    && install -d -o credence -g credence -m 700 /var/lib/credence
COPY --from=environment /opt/credence /opt/credence
COPY docker/healthcheck.py /opt/healthcheck.py
ENV PATH=/opt/credence/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    CREDENCE_DATA_DIR=/var/lib/credence CREDENCE_LOG_FORMAT=json
USER credence
WORKDIR /var/lib/credence
VOLUME /var/lib/credence
EXPOSE 9101
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --retries=6 \
    CMD ["python", "/opt/healthcheck.py", "worker"]
ENTRYPOINT ["credence"]
CMD ["worker"]
