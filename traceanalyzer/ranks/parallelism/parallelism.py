"""Which kind of parallelism each communication kernel serves, as far as its own rank's trace tells.

Evidence, in order of trust: how the program describes the process group; the ranges around the launch; kernels that are written for one
purpose; and patterns (`parallelism_patterns`), of which each needs several signs together. What none of these tells stays null: advice
for the wrong kind of parallelism is worse than advice in general.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames, most
from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.columns.grouped import Groups
from traceanalyzer.derive.host.callers import Callers
from traceanalyzer.intervals import Array
from traceanalyzer.ranks.groups.peers import sides
from traceanalyzer.ranks.parallelism import parallelism_names as names
from traceanalyzer.ranks.parallelism.parallelism_names import GATHERS, HOUSEKEEPING, POINT_TO_POINT, REDUCES, SIGNS
from traceanalyzer.ranks.parallelism.parallelism_patterns import (
    Calls,
    Ranges,
    after_backward,
    between_layers,
    between_passes,
)

SCALARS_BYTES = 64
"""A loss, a norm, some flags: fewer numbers than any layer or bucket sends."""

_LABELS = (
    *(names.DATA, names.SHARDED, names.TENSOR, names.PIPELINE, names.EXPERT, names.EMBEDDING, names.CONTEXT),
    *(names.SYNC, names.OTHER),
)
_CODES: dict[str | None, int] = {label: code for code, label in enumerate(_LABELS)} | {None: NULL}

_BACKWARD = re.compile(
    r"autograd::engine::evaluate_function|^(?:.*[\s.:/#-])?(?:backward|bwd)(?:[\s_-]?(?:pass|step))?$"
)
_PRODUCT = re.compile(r"\baten::(?:addmm|mm|baddbmm|bmm|matmul|linear|_scaled_mm|_?scaled_dot_product\w*|\w*conv\w*)")


def parallelism(
    kernels: pa.Table, calls: pa.Table, collectives: pa.Table, host_ranges: pa.Table, callers: Callers
) -> pa.DictionaryArray:
    """For each row of `communication_kernels` what it serves, or null.

    `calls` are the rows of `launches` that started them, of nulls where there is none.
    """
    found = _Evidence(kernels, calls, host_ranges, callers).labels(collectives)
    return frames.names(found, [label or None for label in _LABELS])


def _distinct(table: pa.Table, *texts: str) -> Iterator[tuple[tuple[int, str, str], Array]]:
    """The combinations of a rank and two names that a table holds, none of them null, and the rows of each."""
    (one, ones), (other, others) = (frames.codes(table, c) for c in texts)
    for (rank, a, b), rows in frames.together(frames.ints(table, "rank"), one, other):
        first, second = ones[a], others[b]
        if first is not None and second is not None:
            yield (rank, first, second), rows


class _Evidence:
    """What is known of each kernel. Labels are codes, `NULL` where nothing is told."""

    def __init__(self, kernels: pa.Table, calls: pa.Table, host_ranges: pa.Table, callers: Callers) -> None:
        self._kernels, self._ranges, self._callers = kernels, host_ranges, callers
        self._size = frames.ints(kernels, "bytes")
        rank, process, thread = (frames.ints(calls, c) for c in ("rank", "process", "thread"))
        self._who, self._time = [rank, process, thread], frames.ints(calls, "start_ns")
        self._inside = callers.around(rank, process, thread, self._time)
        self._label = np.full(kernels.num_rows, NULL)

    def labels(self, collectives: pa.Table) -> Array:
        by_range = self._by_ranges()
        scalars = self._of(HOUSEKEEPING) & (self._size != NULL) & (self._size <= SCALARS_BYTES)
        self._settle(names.SYNC, self._of({"barrier"}))
        # The last bucket of gradients may be as small as a loss.
        self._settle(by_range, scalars)
        self._settle(names.SYNC, scalars)
        self._settle(self._by_description(collectives))
        self._settle(by_range)
        self._settle(self._by_kernel())
        self._settle(names.PIPELINE, self._between_neighbours())
        self._by_patterns()
        return self._with_relatives()

    def _settle(self, label: Array | str, which: Flags | bool = True) -> None:
        """Label those of some kernels that nothing more trusted has labelled."""
        found = np.full(len(self._label), _CODES[label]) if isinstance(label, str) else label
        self._label = np.where(which & (self._label == NULL), found, self._label)

    def _of(self, wanted: frozenset[str] | set[str]) -> Flags:
        return frames.equals(self._kernels, "kind", *wanted)

    def _open(self) -> Array:
        """Kernels that were launched within the capture and about which nothing is told so far."""
        return np.flatnonzero((self._label == NULL) & (self._time != NULL))

    def _named(self, pattern: re.Pattern[str], rows: Flags) -> Flags:
        """Which of some host ranges have a name like this."""
        name, values = frames.codes(self._ranges, "name")
        found: Flags = rows & frames.passing(name, values, lambda text: pattern.search(text) is not None, rows)
        return found

    def _by_description(self, collectives: pa.Table) -> Array:
        """What the descriptions of the process groups tell; groups of one name that are described differently tell nothing."""
        told: dict[tuple[int, str], set[str]] = {}
        for (rank, group, description), _ in _distinct(collectives, "group", "description"):
            told.setdefault((rank, group), set()).add(description)
        label = np.full(len(self._label), NULL)
        for (rank, group, kind), rows in _distinct(self._kernels, "group", "kind") if told else ():
            descriptions = told.get((rank, group), ())
            if len(descriptions) == 1:
                label[rows] = _CODES[names.of_description(*descriptions, kind)]
        return label

    def _by_ranges(self) -> Array:
        """What the innermost range tells that tells anything of a kernel's kind."""
        around = self._callers.those_around(self._inside)
        label, nearest = np.full(len(self._label), NULL), np.full(len(self._label), -1)
        for pattern, wanted, text in SIGNS:
            mine = np.flatnonzero(self._of(wanted) & (self._inside >= 0))
            if len(mine) and (named := self._named(pattern, around)).any():
                row = self._callers.nearest(self._inside[mine], named)
                nearer = row > nearest[mine]
                label[mine[nearer]], nearest[mine[nearer]] = _CODES[text], row[nearer]
        return label

    def _by_kernel(self) -> Array:
        name, values = frames.codes(self._kernels, "name")
        return np.array([_CODES[names.of_kernel(text or "")] for text in values])[name]

    def _between_neighbours(self) -> Flags:
        """Sends and receives of groups in which every one goes to the rank before or after; the last and the first are neighbours."""
        mine = self._open()
        mine = mine[self._of(POINT_TO_POINT)[mine]]
        if not len(mine):
            return self._flags(mine, True)
        row = self._callers.nearest(self._inside[mine], frames.where(self._ranges, "name", lambda n: bool(sides(n))))
        both = [sides(text) for text in self._callers.names(row).to_pylist()]
        apart = np.array([abs(pair[0] - pair[1]) if pair else NULL for pair in both], np.int64)
        mine, apart = mine[apart != NULL], apart[apart != NULL]
        size = frames.ints(self._kernels, "group_size")[mine]
        group = Groups(self._groups()[mine])
        return self._flags(mine, group.all((apart == 1) | (apart == size - 1))[group.of])

    def _groups(self) -> Array:
        """A number for each process group of a process."""
        told = [frames.codes(self._kernels, c)[0] for c in ("group", "group_ranks")]
        return frames.dense(*self._who[:2], *told)

    def _by_patterns(self) -> None:
        mine = self._open()
        if not len(mine):
            return
        plain = ~frames.equals(self._ranges, "category", "python")
        backward = self._named(_BACKWARD, plain)
        rows = [np.flatnonzero(flags) for flags in (backward, self._named(_PRODUCT, plain))]
        of_range = [[frames.ints(self._ranges, c)[r] for c in ("rank", "process", "thread")] for r in rows]
        of_call = [column[mine] for column in self._who]
        # Numbers that kernels and ranges share.
        columns = [np.concatenate(parts) for parts in zip(of_call, *of_range, strict=True)]
        bounds = np.cumsum([len(mine), len(rows[0])])
        process, *processes = np.split(frames.dense(*columns[:2]), bounds)
        thread, *threads = np.split(frames.dense(*columns), bounds)
        passes, products = (
            Ranges(p, t, self._callers.start[r], self._callers.end[r])
            for p, t, r in zip(processes, threads, rows, strict=True)
        )
        calls = Calls(
            process=process,
            thread=thread,
            group=self._groups()[mine],
            kind=frames.codes(self._kernels, "kind")[0][mine],
            gathers=self._of(GATHERS)[mine],
            size=self._size[mine],
            step=frames.ints(self._kernels, "step")[mine],
            time=self._time[mine],
            backward=self._callers.nearest(self._inside[mine], backward) >= 0,
        )
        sums, sends = self._of(REDUCES | GATHERS)[mine], self._of(POINT_TO_POINT)[mine]
        self._settle(names.PIPELINE, self._flags(mine[sends], between_passes(calls.take(sends), passes)))
        self._settle(names.TENSOR, self._flags(mine[sums], between_layers(calls.take(sums), products)))
        gradients = self._flags(mine[sums], after_backward(calls.take(sums), passes, products))
        self._settle(names.DATA, gradients & self._of(REDUCES))
        # A gather after the backward pass may also collect figures; who shards gradients scatters them first.
        group = self._groups()
        self._settle(names.SHARDED, gradients & np.isin(group, group[self._of({"reduce-scatter"})]))
        in_backward = self._callers.nearest(self._inside, backward) >= 0
        self._settle(self._like_forward(~in_backward), in_backward)

    def _like_forward(self, forward: Flags) -> Array:
        """What the forward pass has in this group and kind: ranges that name layers have none in the backward pass."""
        alike = frames.dense(self._groups(), frames.codes(self._kernels, "kind")[0])
        return self._agreed(alike, forward & (self._time != NULL) & (self._label != _CODES[names.SYNC]))

    def _flags(self, rows: Array, values: Flags | bool) -> Flags:
        found = np.zeros(len(self._label), bool)
        found[rows] = values
        return found

    def _with_relatives(self) -> Array:
        """Kernels queued before the capture serve what all others of their name, kind and stream serve.

        Which of them sent and which received may not be known.
        """
        own = [frames.ints(self._kernels, c) for c in ("rank", "process", "device", "stream")]
        kind = np.where(self._of(POINT_TO_POINT), -1, frames.codes(self._kernels, "kind")[0])
        family = frames.dense(*own, frames.codes(self._kernels, "name")[0], kind)
        self._settle(self._agreed(family, True), self._time == NULL)
        return self._label

    def _agreed(self, family: Array, counts: Flags | bool) -> Array:
        """For each kernel the label of its family, where all labels of its members that count are the same."""
        return most.agreed(family, self._label, (self._label != NULL) & counts)
