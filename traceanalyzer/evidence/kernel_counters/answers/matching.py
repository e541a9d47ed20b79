"""Which kernels of the trace a profile stands for: those of its function, grid and block, whatever their names print besides."""

from __future__ import annotations

import re
from dataclasses import field
from functools import lru_cache

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.evidence.kernel_counters.reading.collected import function_of
from traceanalyzer.intervals import Array
from traceanalyzer.records import dataclass

_WORD = re.compile(r"[A-Za-z_]\w*|\d+")
_PARAMETERS = re.compile(r">\s*\([^<>]*\)$")
_COMMON = frozenset(
    {
        "at",
        "native",
        "std",
        "void",
        "const",
        "unnamed",
        "anonymous",
        "namespace",
        "lambda",
        "instance",
        "operator",
        "cuda",
        "templates",
        "c10",
        "ul",
    }
)
_NUMBER = re.compile(r"(?:\([\w ]+\))?(-?\d+)(?:u?l{0,2})>?")
_PLACEHOLDER = re.compile(r"T\d+")
_TYPES = frozenset(
    {
        "float",
        "double",
        "Half",
        "BFloat16",
        "half",
        "__half",
        "__nv_bfloat16",
        "half_t",
        "bfloat16_t",
        "tfloat32_t",
        "bool",
    }
)
MOST = 0.7
"""Of the words that a profile's name has among its template arguments, so many are in the trace's, which prints more."""
SURE = 0.05
"""By so much more of its words a name must be like another than the next one, to be told from it."""


@dataclass(frozen=True)
class Match:
    """Rows of `kernels` of one GPU that a profile stands for, by the profile's row; `shared` are launches of which that is not told."""

    gpu: frames.Key
    rows: Array
    name: str | None
    shared: int = 0


@dataclass
class Matches:
    """By profile, the matches on each GPU of its rank."""

    of: dict[int, list[Match]] = field(default_factory=dict)


def kernel_matches(kernel_profiles: pa.Table, kernels: pa.Table) -> Matches:
    """The launches that each profile stands for. Of several kernels of one function, grid and block, names tell: the profiler prints
    template arguments without their namespaces, so their words are compared."""
    found = Matches()
    if not kernel_profiles.num_rows or not kernels.num_rows:
        return found
    profiles = kernel_profiles.select(["rank", "name", "function", "blocks", "block", "threads"]).to_pylist()
    wanted = {profile["function"] for profile in profiles}
    groups = _groups(kernels, wanted)
    for number, profile in enumerate(profiles):
        for gpu, by_function in groups.items():
            if gpu[0] != profile["rank"]:
                continue
            alike = [group for group in by_function.get(profile["function"], ()) if _fits(profile, group)]
            if alike and (match := _match(gpu, profile, alike)) is not None:
                found.of.setdefault(number, []).append(match)
    return found


@dataclass(frozen=True)
class _Group:
    name: str
    blocks: int
    block: str | None
    rows: Array


def _groups(kernels: pa.Table, wanted: set[str]) -> dict[frames.Key, dict[str, list[_Group]]]:
    """By GPU and function, the rows of each name, grid and block."""
    code, names = frames.codes(kernels, "name")
    functions = [function_of(name) if name else None for name in names]
    known = np.array([function in wanted for function in functions])[code]
    rows = np.flatnonzero(known)
    shape, shapes = frames.codes(kernels, "block")
    blocks = frames.ints(kernels, "blocks")
    ranks, devices = frames.ints(kernels, "rank"), frames.ints(kernels, "device")
    found: dict[frames.Key, dict[str, list[_Group]]] = {}
    keys = (ranks[rows], devices[rows], code[rows], blocks[rows], shape[rows])
    for (rank, device, name, size, block), at in frames.together(*keys):
        function = functions[name]
        assert function is not None
        group = _Group(names[name] or "", size, shapes[block], rows[at])
        found.setdefault((rank, device), {}).setdefault(function, []).append(group)
    return found


def _fits(profile: dict[str, object], group: _Group) -> bool:
    """Whether grid and block are the same, as far as both are known."""
    blocks, block = profile["blocks"], profile["block"]
    if blocks is not None and group.blocks not in (frames.NULL, blocks):
        return False
    return block is None or group.block is None or block == group.block


def _match(gpu: frames.Key, profile: dict[str, object], alike: list[_Group]) -> Match | None:
    known = str(profile["name"])
    names = sorted({group.name for group in alike if _may_be(known, group.name)})
    if not names:
        return None
    name = names[0] if len(names) == 1 else _likest(known, names)
    if name is None:
        return Match(gpu, np.empty(0, np.int64), None, sum(len(one.rows) for one in alike if one.name in names))
    rows = np.concatenate([group.rows for group in alike if group.name == name])
    return Match(gpu, np.sort(rows), name)


def _may_be(name: str, other: str) -> bool:
    """Whether two names of one function may be of one instance of its template: the numbers that its arguments begin with are the same,
    the types too, and most of what else is named in them. A name without arguments may be any."""
    if name == other or "<" not in name or "<" not in other:
        return True
    if _leading(name) != _leading(other):
        return False
    named, there = {word for word in _words(name) if not word.isdigit()} - _function_words(name), _words(other)
    if not named & _TYPES <= there:
        return False
    return not named or len(named & there) >= MOST * len(named)


def _leading(name: str) -> list[str]:
    """The numbers that the first template arguments are."""
    _, _, arguments = name.partition("<")
    found = []
    for argument in arguments.split(","):
        number = _NUMBER.fullmatch(argument.strip())
        if number is None:
            break
        found.append(number[1])
    return found


def _function_words(name: str) -> set[str]:
    return set(_WORD.findall(name.partition("<")[0]))


def _likest(name: str, names: list[str]) -> str | None:
    """The name whose words are most like those of another; None where two are as much, or it has no template arguments."""
    if name in names:
        return name
    if "<" not in name:
        return None
    likeness = sorted(((_likeness(name, one), one) for one in names), reverse=True)
    (best, found), (second, _) = likeness[:2]
    return found if best - second >= SURE else None


def _likeness(one: str, other: str) -> float:
    a, b = _words(one), _words(other)
    return len(a & b) / max(len(a | b), 1)


@lru_cache(maxsize=8192)
def _words(name: str) -> frozenset[str]:
    """Of template arguments: parameters are printed as T1 or as what they are."""
    words = frozenset(_WORD.findall(_PARAMETERS.sub("", name))) - _COMMON
    return frozenset(word for word in words if not _PLACEHOLDER.fullmatch(word))
