"""Read an object whose values are not all of the expected types, field by field."""

from __future__ import annotations

import math
from typing import Any, TypeVar, get_args

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


class LooseReader:
    """Reads objects into one struct type and those inside it."""

    def __init__(self, struct: type[S]) -> None:
        self._struct = struct
        self._fields = [_Field(field) for field in msgspec.structs.fields(struct)]

    def read(self, raw: bytes | msgspec.Raw) -> tuple[Any, int]:
        """The struct, and how many values could not be read and are absent. Raises msgspec.ValidationError for no object."""
        found = _object.decode(raw)
        values, unread = {}, 0
        for field in self._fields:
            if (value := found.get(field.key)) is None:
                continue
            try:
                values[field.name], more = field.read(value)
                unread += more
            except msgspec.ValidationError:
                unread += 1
        return self._struct(**values), unread


class _Field:
    def __init__(self, field: msgspec.structs.FieldInfo) -> None:
        self.name, self.key = field.name, field.encode_name
        structs = [
            t for t in (field.type, *get_args(field.type)) if isinstance(t, type) and issubclass(t, msgspec.Struct)
        ]
        self._inner = LooseReader(structs[0]) if structs else None
        self._strict = msgspec.json.Decoder(field.type)
        # Takes numbers from strings that spell one.
        self._lax = msgspec.json.Decoder(field.type, strict=False)

    def read(self, raw: msgspec.Raw) -> tuple[Any, int]:
        try:
            return self._strict.decode(raw), 0
        except msgspec.ValidationError:
            if self._inner:
                return self._inner.read(raw)
        value = self._lax.decode(raw)
        if isinstance(value, float) and not math.isfinite(value):
            raise msgspec.ValidationError("not finite")
        return value, 0
