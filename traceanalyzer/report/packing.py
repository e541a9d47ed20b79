"""How data travels inside the page: packed blocks that scripts unpack, and JSON that scripts read as it is."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from markupsafe import Markup

LEVEL = 4
"""The last three percent of size would cost nearly as much time again."""


def pack(data: bytes) -> str:
    """gzip in base64, with no clock in it: the same data gives the same text. `unpack` in data.js reads it."""
    return base64.b64encode(gzip.compress(data, compresslevel=LEVEL, mtime=0)).decode()


def packed_json(data: Any) -> str:
    """The same of a value as compact JSON."""
    return pack(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())


def inline_json(data: Any) -> Markup:
    """JSON that cannot end the script element it stands in, nor a line of a script."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
