# One image for the web server, the worker and MCP alone; docker-compose.yml shows the commands.
FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /venv
COPY requirements/base.txt /tmp/base.txt
RUN /venv/bin/pip install --require-hashes -r /tmp/base.txt

FROM python:3.13-slim
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
RUN useradd --system --uid 10001 --home-dir /app ace
COPY --from=build /venv /venv
WORKDIR /app
COPY . .
# Static files are named by their content; no setting matters for that, and none is kept.
RUN ACE_LOCAL=false DATABASE_URL=postgres://none@localhost/none \
    SECRET_KEY=collectstatic-needs-no-real-secret-key \
    JWT_SECRET_KEY=collectstatic-needs-no-real-secret-key \
    FIELD_ENCRYPTION_KEYS=collectstatic-needs-no-real-secret-key \
    python manage.py collectstatic --noinput --verbosity 0 \
    && python -m compileall -q -j 0 /app
USER ace
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["python", "-m", "config.health"]
# exec: the server is process 1 and gets the signals itself.
CMD ["sh", "-c", "exec uvicorn config.asgi:application --host 0.0.0.0 --port ${PORT:-8000} \
    --workers ${WEB_PROCESSES:-2} --no-access-log --no-server-header --proxy-headers \
    --timeout-graceful-shutdown 5"]
