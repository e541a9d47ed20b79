"""Inputs of operators in the form that Kineto writes them in, of what an execution trace says of them."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

import msgspec

_LIST = re.compile(r"GenericList\[(.*)\]", re.DOTALL)
_TENSOR = re.compile(r"Tensor\((.*)\)", re.DOTALL)
_NUMBERS = ("Int", "Double", "Bool", "SymInt", "SymFloat", "SymBool", "ComplexDouble")
_NO_TENSOR = "nullptr"
_MOST = 1 << 16
WITH_ARGUMENTS = re.compile(r"conv|attention|attn")
"""Operators whose work depends on more than the shapes of their inputs."""


@lru_cache(maxsize=1 << 14)
def shapes_and_types(shapes: bytes, types: bytes) -> tuple[str | None, str | None]:
    """ "Input Dims" and "Input type" of a Kineto trace, as JSON; None for what cannot be told."""
    told, names = _items(shapes), _items(types)
    if told is None or names is None or len(told) != len(names) or not all(isinstance(one, str) for one in names):
        return None, None
    if not told:
        return None, None
    dims = [_dims(shape, name) for shape, name in zip(told, names, strict=True)]
    if any(one is None for one in dims):
        return None, None
    return json.dumps(dims), json.dumps([_type(name, shape) for shape, name in zip(told, names, strict=True)])


def arguments(values: bytes, types: bytes) -> str | None:
    """ "Concrete Inputs" of a Kineto trace, as JSON: an empty text for each tensor and for None."""
    told, names = _items(values), _items(types)
    if told is None or names is None or len(told) != len(names):
        return None
    return json.dumps([_value(value, str(name)) for value, name in zip(told, names, strict=True)])


def _items(text: bytes) -> list[Any] | None:
    if not 0 < len(text) <= _MOST:
        return None
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _dims(shape: Any, name: str) -> list[Any] | None:
    """A tensor's shape, those of a list's tensors, and [] for what has none; None for what is no shape."""
    if not isinstance(shape, list):
        return None
    if _TENSOR.fullmatch(name):
        return shape if _is_shape(shape) else None
    if _tensors(name):
        return shape if all(isinstance(one, list) and _is_shape(one) for one in shape) else None
    return []


def _is_shape(found: list[Any]) -> bool:
    return all(type(one) is int and 0 <= one < 1 << 62 for one in found)


def _tensors(name: str) -> bool:
    inside = _LIST.fullmatch(name)
    return inside is not None and inside[1].startswith("Tensor(")


def _type(name: str, shape: Any) -> str:
    if found := _TENSOR.fullmatch(name):
        return "" if found[1].startswith(_NO_TENSOR) else found[1]
    if _LIST.fullmatch(name):
        return "TensorList" if _tensors(name) else "ScalarList"
    return "Scalar" if name in _NUMBERS else ""


def _value(value: Any, name: str) -> str:
    if name.startswith("Tensor(") or _tensors(name) or (isinstance(value, str) and value.startswith("<")):
        return ""
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return str(value)
