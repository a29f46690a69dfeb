# One image for web, worker and MCP alone: docker-compose.yml, fly.toml and deploy/kubernetes show the
# commands. Pin the base image for reproducible builds:
# --build-arg PYTHON=python:3.13-slim@sha256:…
ARG PYTHON=python:3.13-slim

FROM ${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
RUN python -m venv /venv
COPY requirements/base.txt /tmp/base.txt
# Every package by version and hash; pip itself is not needed afterwards.
RUN /venv/bin/pip install --quiet --require-hashes --only-binary :all: -r /tmp/base.txt \
    && /venv/bin/pip uninstall --quiet --yes pip
WORKDIR /app
COPY . .
# Placeholder settings: collectstatic needs none of them, and none is kept.
RUN ACE_LOCAL=false DATABASE_URL=postgres://none@localhost/none \
    SECRET_KEY=collectstatic-needs-no-real-secret-key \
    JWT_SECRET_KEY=collectstatic-needs-no-real-secret-key \
    FIELD_ENCRYPTION_KEYS=collectstatic-needs-no-real-secret-key \
    /venv/bin/python manage.py collectstatic --noinput --verbosity 0 \
    && /venv/bin/python -m compileall -q -j 0 /app /venv

FROM ${PYTHON}
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 ACE_DATA_DIR=/data
RUN groupadd --system --gid 10001 ace \
    && useradd --system --uid 10001 --gid ace --home-dir /nonexistent --no-create-home ace \
    && install -d -o ace -g ace -m 700 /data /secrets
COPY --from=build /venv /venv
# Owned by root, so the program cannot change itself. Only volumes are writable.
COPY --from=build /app /app
WORKDIR /app
USER 10001:10001
EXPOSE 8000
# For the web server; other roles disable it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["python", "-m", "config.observability.healthcheck"]
# exec makes the server process 1, which receives the signals. FORWARDED_ALLOW_IPS lists the proxies
# whose X-Forwarded-For is trusted; by default only this container's loopback.
CMD ["sh", "-c", "exec uvicorn config.asgi:application --host 0.0.0.0 --port ${PORT:-8000} \
    --workers ${WEB_PROCESSES:-2} --log-level warning --no-access-log --no-server-header \
    --proxy-headers --timeout-graceful-shutdown 5"]
