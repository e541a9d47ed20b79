"""How the documents are written: JSON whose same content gives the same bytes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec

from traceanalyzer.records import dataclass


@dataclass(frozen=True)
class Written:
    """A document: plain data with a `schema_version`, which is written first."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data in the published key order."""
        body = asdict(self)
        return {"schema_version": body.pop("schema_version"), **body}

    def to_json(self) -> bytes:
        """UTF-8 JSON, indented by two, ending in a newline."""
        return msgspec.json.format(msgspec.json.encode(_encodable(self.to_dict())), indent=2) + b"\n"


def _encodable(value: Any) -> Any:
    """Plain data whose texts are UTF-8: the name of a file may be any bytes, which stand as escapes then."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value
