# The worker's image with Ray, for KubeRay. Build it from the repository's root, after the worker's:
#   docker build -f deploy/kubernetes/training/kuberay/ray.Dockerfile -t credence-ray .
ARG WORKER=credence-worker
FROM ${WORKER}
USER root
RUN python3 -m pip --python /opt/credence/bin/python install --quiet "ray[default]==2.60.0"
USER credence
ENTRYPOINT []
