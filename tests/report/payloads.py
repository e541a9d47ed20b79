"""Reading the packed blocks of a page by their documented layout, independent of what writes them."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np


class Block:
    """A header, and arrays one after the other, each at a multiple of eight bytes."""

    def __init__(self, blob: str) -> None:
        self._data = gzip.decompress(base64.b64decode(blob))
        self._offset = 4 + int.from_bytes(self._data[:4], "little")
        self.header: dict[str, Any] = json.loads(self._data[4 : self._offset])

    def read(self, dtype: str, n: int) -> np.ndarray:
        """The next array."""
        self._offset = -(-self._offset // 8) * 8
        array = np.frombuffer(self._data, dtype, n, self._offset)
        self._offset += array.nbytes
        return array

    @property
    def is_read(self) -> bool:
        """Whether nothing is left."""
        return self._offset == len(self._data)
