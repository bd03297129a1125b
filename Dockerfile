# One image for the server and for every client:  docker build --tag fism .
# Another base, with Python 3.11 or later:        docker build --build-arg BASE=... --tag fism .
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_PYTHON=/opt/fism/bin/python
RUN python3 -m venv --without-pip /opt/fism
WORKDIR /src
COPY pyproject.toml constraints.txt ./
# Dependencies first, so that a change of our code does not download them again.
RUN python3 -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" > needs.txt \
 && python3 -m pip install --only-binary :all: --requirement needs.txt --constraint constraints.txt \
 && find /opt/fism/lib -type d -name tests -prune -exec rm -r {} +
COPY . .
RUN python3 -m pip install --no-deps . && install deploy/entrypoint /opt/fism/bin/fism-entrypoint

# The example's data comes with scikit-learn, which the image does not need.
FROM build AS hospitals
RUN python3 -m pip install --only-binary :all: scikit-learn --constraint constraints.txt

FROM ${BASE}
LABEL org.opencontainers.image.title="FISM" \
      org.opencontainers.image.description="Sites fit one convex model together; the coordinator's private preference selects it" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin fism
COPY --from=build /opt/fism /opt/fism
# Set both CPU variables: with the name alone, numba would add the features of the build machine.
ENV PATH=/opt/fism/bin:$PATH PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES="" NUMBA_CACHE_DIR=/tmp/fism-kernels
RUN fism-entrypoint warm && mv /tmp/fism-kernels /opt/fism/kernels
USER fism
WORKDIR /
# For a server with --health 127.0.0.1:50052. A client does not listen: run it with --no-healthcheck.
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["fism", "health", "127.0.0.1:50052"]
ENTRYPOINT ["fism-entrypoint"]
CMD ["--help"]
