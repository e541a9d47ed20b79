"""Modules of the flops profiler's last report: what of their figures holds, told from what else is printed of them.

A linear layer has in_features x out_features weights, so that fewer parameters are a shard's. It does that many multiply-accumulate
operations for each row of its input, and a normalisation beside it five operations an element: where the product has twice the rows
of the normalisation, it is counted twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.evidence.deepspeed_log.derived_tables import MODULE_COSTS

EPOCH_S = 1e8
"""A latency in seconds beyond this (three years) is no duration but a moment: seconds since 1970."""
NORM_FLOPS = 5
"""Operations that the profiler counts an element of an affine LayerNorm (4 without affine)."""
LEAST, PLACEHOLDER = 100, 2
"""Parameters that a module has at least to tell whether they are there, and those that placeholders count as."""
NEAR = 0.02
"""So far a ratio may be off: figures are printed with two decimals."""
_FEATURES = re.compile(r"in_features=(\d{1,9}), out_features=(\d{1,9})(?:, bias=(True|False))?")
_NORM = re.compile(r"\((\d[\d, ]*),?\), eps=[\d.e-]+(?:, elementwise_affine=(True|False))?(?:, bias=(True|False))?")
_EMBEDDING = re.compile(r"(\d{1,9}), (\d{1,9})(?:, padding_idx=-?\d+)?(?:,.*)?")
_ACTIVATIONS = frozenset({"GELU", "ReLU", "SiLU", "GELUActivation", "NewGELUActivation", "SiLUActivation"})
_WHOLE = ("Linear", "LayerNorm", "Embedding")
"""Classes that hold all weights of their printed shape: quantised and adapted ones have others."""
_BARE = frozenset(
    {
        *("ModuleList", "Sequential", "ModuleDict", "Dropout", "Identity", "Flatten", "CrossEntropyLoss"),
        *(
            "ReLU",
            "SiLU",
            "Tanh",
            "Sigmoid",
            "Softmax",
            "LogSoftmax",
            "GELU",
            "GELUActivation",
            "NewGELUActivation",
            "SiLUActivation",
        ),
        *("MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d"),
    }
)
Row = dict[str, Any]


def module_costs(deepspeed_modules: pa.Table, deepspeed_profiles: pa.Table) -> pa.Table:
    """The modules of the last report of each rank's file."""
    rows: list[Row] = []
    for rank in sorted(deepspeed_modules["rank"].unique().to_pylist()):
        own = deepspeed_modules.filter(pc.equal(deepspeed_modules["rank"], rank))
        last = own.filter(pc.equal(own["report"], pc.max(own["report"]).as_py())).sort_by("order")
        rows += _report(rank, last.to_pylist())
    return pa.Table.from_pylist(rows, MODULE_COSTS.schema)


def _report(rank: int, modules: Sequence[Row]) -> list[Row]:
    inside: list[list[int]] = [[] for _ in modules]
    for at, one in enumerate(modules):
        if one["parent"] is not None:
            inside[one["parent"]].append(at)
    own_shape = [_own_parameters(one, not inside[at]) for at, one in enumerate(modules)]
    flops = [_flops(one) for one in modules]
    twice = _twice(modules, inside, flops)
    shaped: list[int | None] = list(own_shape)
    sharded = [_is_shard(one) for one in modules]
    saved = [float(one["macs"] or 0) / 2 if at in twice else 0.0 for at, one in enumerate(modules)]
    for at in range(len(modules) - 1, -1, -1):
        parent = modules[at]["parent"]
        if inside[at]:
            kids = [(shaped[kid], modules[kid]["repeat"]) for kid in inside[at]]
            known = [size * repeat for size, repeat in kids if size is not None]
            shaped[at] = sum(known) if len(known) == len(kids) and own_shape[at] == 0 else None
        if inside[at] and modules[at]["macs"] and abs(2 * saved[at] / modules[at]["macs"] - 1) <= NEAR / 2:
            # All of it is twice, but for what rounding each module's figure adds up to.
            saved[at] = modules[at]["macs"] / 2
        if parent is not None:
            saved[parent] += saved[at] * modules[at]["repeat"]
    return [
        {
            "rank": rank,
            **{name: one[name] for name in ("order", "parent", "depth", "path", "class", "repeat", "params", "macs")},
            "seconds": one["latency_seconds"],
            "shaped": shaped[at],
            "once": None if one["macs"] is None else round(one["macs"] - saved[at]),
            "flops": flops[at],
            "latency": one["latency"] if _possible(one) else None,
            "twice": at in twice,
            "sharded": sharded[at],
        }
        for at, one in enumerate(modules)
    ]


def _possible(one: Row) -> bool:
    return one["latency_seconds"] is not None and one["latency_seconds"] < EPOCH_S


def _flops(one: Row) -> float | None:
    """Operations by the printed rate and latency, both rounded to two decimals."""
    if not _possible(one) or one["rate"] is None or not one["latency_seconds"]:
        return None
    return float(one["rate"] * one["latency_seconds"])


def _own_parameters(one: Row, leaf: bool) -> int | None:
    """Parameters of the module itself by its class and printed shape; None where that does not tell."""
    kind, shape = one["class"], one["shape"] or ""
    if linear := _FEATURES.search(shape):
        into, out = int(linear[1]), int(linear[2])
        return into * out + (out if linear[3] == "True" else 0)
    if kind.endswith("LayerNorm") and (norm := _NORM.match(shape)):
        return _norm_size(norm) * (0 if norm[2] == "False" else 1 if norm[3] == "False" else 2)
    if kind.endswith("Embedding") and (table := _EMBEDDING.fullmatch(shape)):
        return int(table[1]) * int(table[2])
    # What has modules inside has its own parameters seldom, and none that is printed; a leaf of an unknown class may have any.
    return (
        0
        if kind in _BARE or kind.startswith("Dropout") or (not leaf and not one["shape"]) or one["params"] == 0
        else None
    )


def _norm_size(norm: re.Match[str]) -> int:
    return int(np.prod([int(part) for part in norm[1].replace(" ", "").split(",") if part]))


def _twice(modules: Sequence[Row], inside: Sequence[Sequence[int]], flops: Sequence[float | None]) -> set[int]:
    """The linear layers, where others beside them tell that their products are counted twice.

    ZeRO-3's own linear function, of which both the call and the product inside are counted, stands for all or for none of them. What an
    activation tells depends on which layer it follows, so that it counts only where weights are sharded.
    """
    linears, told = set(), {1: 0, 2: 0}
    sharded = any(_is_shard(one) for one in modules)
    for kids in inside:
        for at in kids:
            found = _FEATURES.search(modules[at]["shape"] or "")
            if found is None or not modules[at]["macs"]:
                continue
            linears.add(at)
            rows = modules[at]["macs"] / (int(found[1]) * int(found[2]))
            others = _rows_by_norms(modules, kids, flops, int(found[1]))
            if sharded:
                others += _rows_by_activation(modules, kids, flops, at, int(found[2]))
            for other in others:
                for times in told:
                    told[times] += abs(rows / other - times) <= NEAR * times
    return linears if told[2] > told[1] else set()


def _is_shard(one: Row) -> bool:
    """Whether its weights are not there: under ZeRO-3 an empty placeholder stands for them, while a small bias may stay."""
    own, left = _own_parameters(one, True), one["params"]
    if own is None or own < LEAST or left is None or one["class"] not in _WHOLE:
        return False
    linear = _FEATURES.search(one["shape"] or "")
    return bool(left <= PLACEHOLDER + (int(linear[2]) if linear else 0))


def _rows_by_norms(
    modules: Sequence[Row], kids: Sequence[int], flops: Sequence[float | None], features: int
) -> list[float]:
    """Rows that normalisations of so many features say that there are."""
    found = []
    for at in kids:
        done, norm = flops[at], _NORM.match(modules[at]["shape"] or "")
        if done and norm and modules[at]["class"].endswith("LayerNorm") and _norm_size(norm) == features:
            found.append(done / ((NORM_FLOPS - (norm[2] == "False")) * features))
    return found


def _rows_by_activation(
    modules: Sequence[Row], kids: Sequence[int], flops: Sequence[float | None], linear: int, features: int
) -> list[float]:
    """Rows that an activation right after a linear layer says that there are: it does one operation an element."""
    after = next((at for at in kids if at > linear), None)
    if after is None or modules[after]["class"] not in _ACTIVATIONS:
        return []
    done = flops[after]
    return [done / features] if done else []
