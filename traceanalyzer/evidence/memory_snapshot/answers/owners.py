"""Who asked for a block: the innermost line of the user's own code, or why none is known; and what it is for, where that is plain."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL, Flags
from traceanalyzer.evidence.memory_snapshot.answers.history import BEFORE, History
from traceanalyzer.evidence.memory_snapshot.answers.periods import Periods
from traceanalyzer.intervals import Array
from traceanalyzer.places import frame_text
from traceanalyzer.records import dataclass

NO_FRAME = "no Python frame (backward)"
"""Autograd's threads run no Python: what they allocate carries no line of the program."""
NO_PYTHON = "no Python frame"
NO_STACK = "no stack recorded"
EARLIER = "from before the recorded history"
NOWHERE = frozenset((NO_FRAME, NO_PYTHON, NO_STACK, EARLIER))
"""What stands where no line of the program is known."""
PARAMETERS, OPTIMIZER, ACTIVATIONS, BACKWARD = "parameters", "optimizer state", "activations", "backward"
_WHAT = (PARAMETERS, OPTIMIZER, ACTIVATIONS, BACKWARD)

_OPTIMIZERS = ("torch/optim/", "/bitsandbytes/optim/", "/apex/optimizers/", "/deepspeed/ops/adam/", "/torchao/optim/")
_MODULES = ("torch/nn/modules/", "/transformers/")
_MAKES = frozenset(
    ("_apply", "convert", "__init__", "reset_parameters", "load_state_dict", "from_pretrained", "to_empty")
)
_LOSSES = frozenset(
    ("cross_entropy", "nll_loss", "log_softmax", "binary_cross_entropy_with_logits", "kl_div", "mse_loss")
)
_GATHERS = frozenset(
    (
        *("all_gather", "all_gather_into_tensor", "_all_gather_base", "all_gather_base", "all_gather_object"),
        *("unshard", "_unshard", "all_gather_copy_in", "foreach_all_gather", "_alloc_storage", "gather"),
    )
)


class Stacks:
    """The stacks of one rank, each a number: what their frames tell. `frames_table` holds rows of snapshot_frames of that rank."""

    def __init__(self, frames_table: pa.Table) -> None:
        self._frames = frames_table
        self._stack = frames.ints(frames_table, "stack")
        self.count = int(self._stack.max(initial=-1)) + 1

    @cached_property
    def optimizer(self) -> Flags:
        """Whether a step of an optimizer asked for it."""
        return self._any(frames.where(self._frames, "file", lambda file: any(part in file for part in _OPTIMIZERS)))

    @cached_property
    def makes(self) -> Flags:
        """Whether a module was made, loaded or moved."""
        modules = frames.where(self._frames, "file", lambda file: any(part in file for part in _MODULES))
        return self._any(modules & frames.where(self._frames, "name", lambda name: name in _MAKES))

    @cached_property
    def forward(self) -> Flags:
        """Whether a module was called."""
        return self._any(frames.where(self._frames, "name", lambda name: name in ("forward", "_call_impl")))

    @cached_property
    def loss(self) -> Flags:
        """Whether a loss was computed."""
        return self._any(frames.where(self._frames, "name", lambda name: name in _LOSSES or name.endswith("_loss")))

    @cached_property
    def gather(self) -> Flags:
        """Whether it is for what other ranks have."""
        return self._any(frames.where(self._frames, "name", lambda name: name in _GATHERS))

    @cached_property
    def autograd(self) -> Flags:
        """Whether autograd's engine ran it."""
        return self._any(frames.where(self._frames, "name", lambda name: "torch::autograd::Engine" in name))

    @cached_property
    def library(self) -> list[str | None]:
        """The innermost Python frame, of whatever library, as text; None where there is none."""
        python = frames.where(self._frames, "file", lambda file: file.endswith(".py"))
        rows = np.flatnonzero(python)
        position = frames.ints(self._frames, "position")[rows]
        rows = rows[np.lexsort((position, self._stack[rows]))]
        stack, first = np.unique(self._stack[rows], return_index=True)
        found: list[str | None] = [None] * self.count
        part = self._frames.take(pa.array(rows[first])).select(["file", "line", "name"])
        for number, row in zip(stack.tolist(), part.to_pylist(), strict=True):
            found[number] = f"{frame_text('{file}({line}): {name}'.format(**row))}, in a library"
        return found

    def _any(self, rows: Flags) -> Flags:
        found = np.zeros(self.count + 1, bool)
        found[self._stack[rows]] = True
        return found

    def of(self, flags: Flags, stack: Array) -> Flags:
        """A property of stacks for each block; false without a stack."""
        found: Flags = flags[np.where(stack == NULL, self.count, stack)]
        return found


def stacks_by_rank(snapshot_frames: pa.Table) -> dict[int, Stacks]:
    """The stacks of each rank that has any."""
    order = np.argsort(frames.ints(snapshot_frames, "rank"), kind="stable")
    table = snapshot_frames if (np.diff(order) == 1).all() else snapshot_frames.take(pa.array(order))
    return {rank: Stacks(part) for rank, part in frames.by_rank(table).items()}


@dataclass(frozen=True)
class Owners:
    """For each block of a history the number of its owner; `names` has their (place, what it is for).

    `placed` says that stacks were recorded.
    """

    number: Array
    names: list[tuple[str, str | None]]
    placed: bool

    @property
    def count(self) -> int:
        return len(self.names)

    def bytes_of(self, rows: Flags, size: Array) -> Array:
        """Bytes of the chosen blocks by owner."""
        return np.bincount(self.number[rows], size[rows], self.count).astype(np.int64)

    def blocks_of(self, rows: Flags) -> Array:
        """Their number by owner."""
        return np.bincount(self.number[rows], minlength=self.count)


def owners(history: History, periods: Periods, stacks: Stacks | None) -> Owners:
    """Who owns each block of one GPU."""
    code, values = frames.codes(history.blocks, "place")
    stack, count = history.stack, len(values)
    texts = [value or "" for value in values]
    placed = stacks is not None and stacks.count > 0
    no_stack = len(texts)
    texts += [NO_FRAME if placed else NO_STACK, EARLIER, NO_FRAME, NO_PYTHON]
    code = np.where(
        (code == count - 1) & (stack == NULL), np.where(history.born == BEFORE, no_stack + 1, no_stack), code
    )
    if stacks is not None:
        for number in np.unique(stack[code == count - 1]).tolist():
            here, known = (code == count - 1) & (stack == number), stacks.library[number]
            if known:
                texts.append(known)
            code[here] = len(texts) - 1 if known else no_stack + (2 if stacks.autograd[number] else 3)
    what = _purpose(history, periods, stacks)
    what[np.isin(code, (no_stack, no_stack + 2)) & (what < 0) & placed] = _WHAT.index(BACKWARD)
    number = frames.dense(code, what)
    first = np.unique(number, return_index=True)[1].tolist()
    names = [(texts[code[row]], _WHAT[what[row]] if what[row] >= 0 else None) for row in first]
    return Owners(number, names, placed)


def lasting(history: History, periods: Periods) -> Flags:
    """Which blocks outlive a step: in use where two steps meet, or at the snapshot where none are known."""
    if not periods.count:
        return history.released >= history.after
    meetings = np.searchsorted(periods.bounds, history.released, side="right") - np.searchsorted(
        periods.bounds, history.born, side="right"
    )
    last = (history.released >= history.after) & (history.born < periods.bounds[-1])
    found: Flags = (meetings >= 2) | last
    return found


def _purpose(history: History, periods: Periods, stacks: Stacks | None) -> Array:
    """What each block is for, by its place in _WHAT; -1 where that is not plain."""
    found = np.full(len(history.size), -1)
    if stacks is None or not stacks.count:
        return found
    stays, stack = lasting(history, periods), history.stack
    optimizer = stacks.of(stacks.optimizer, stack)
    makes = stacks.of(stacks.makes, stack) & ~optimizer
    found[makes & stays] = _WHAT.index(PARAMETERS)
    found[optimizer & stays] = _WHAT.index(OPTIMIZER)
    found[stacks.of(stacks.forward, stack) & ~makes & ~optimizer & ~stays] = _WHAT.index(ACTIVATIONS)
    return found
