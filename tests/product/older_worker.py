"""A worker of an older version, beside those of the running product: it does not know one thing.

python -m tests.product.older_worker tool:refund_order
"""

import sys

from config.celery import app


def main(without: str) -> None:
    app.loader.import_default_modules()
    from agents import abilities  # noqa: PLC0415 - the settings come first

    older = [word for word in abilities.ours() if word != without]
    if len(older) == len(abilities.ours()):
        raise SystemExit(f"no version of ours knows {without}")
    abilities.ours = lambda: older
    options = ["-P", "threads", "-c", "4", "-l", "WARNING", "--without-gossip", "--without-mingle"]
    app.worker_main(["worker", *options, "-n", "older@%h"])


if __name__ == "__main__":
    main(sys.argv[1])
