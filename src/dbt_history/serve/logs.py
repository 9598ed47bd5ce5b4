"""The log of the destination: text, or JSON as the partner guide asks for."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

# The guide's names of the levels.
LEVELS = {"WARNING": "WARNING", "ERROR": "SEVERE", "CRITICAL": "SEVERE"}
# What a record of a call contains besides its message.
FIELDS = ("call", "table", "outcome", "seconds")


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        document = {
            "level": LEVELS.get(record.levelname, "INFO"),
            "message": record.getMessage(),
            "message-origin": "sdk_destination",
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            **fields,
        }
        return json.dumps(document, ensure_ascii=False)


def start_logging(form: str, level: int) -> None:
    """Log as `text` to stderr, or as `json` to stdout."""
    if form == "json":
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(JsonFormatter())
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("dbt_history.serve").setLevel(level)
