"""Jobs of ByteDance-Seed/StragglerAnalysis as events of the job replay: each worker of each step is a line of its own.

A worker (one rank of the data and pipeline parallelism) computes in order; its sends, receives and collectives lie on five streams
beside that: one a direction and side of the pipeline, and one for gathering parameters and reducing gradients. What waits for what is
theirs (`analyzer/dependency_model.py`), told from the first step of the first rank, as there.
"""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.replay.replay import NEVER
from traceanalyzer.ranks.replay.play import ISSUES as ISSUE
from traceanalyzer.ranks.replay.play import JOINS as JOIN
from traceanalyzer.ranks.replay.play import KINDS, Lines, play
from traceanalyzer.ranks.replay.play import MARKS as MARK
from traceanalyzer.ranks.replay.tables import LINE_EVENTS

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.str_]
COMPUTE = -1
# Kinds that take the middle and not the mean of their like: all that communicates, or is called so.
LIKE_COMMUNICATION = ("send", "recv", "all-gather", "reduce-scatter", "all-reduce", "clip-main-grad")
# What ends longer than this before the last one came is taken to have no transfer.
_EARLY_NS = 10_000_000
_COLUMNS = ("step", "dp_rank", "stage")
# After the last computation of a step, in this order; what is none of these does not come in the three jobs.
_GATHER, _REDUCE = "params-all-gather", "grads-reduce-scatter"
_TIED, _CLIP = "embedding-grads-all-reduce", "optimizer-clip-main-grad"


@dataclass(frozen=True)
class Operations:
    """What was recorded, one value an operation, by (step, rank, stage, kind, number); times in ns from the start of the step.

    `rank` is that of the data parallelism, `worker` the job's.
    """

    step: Ints
    rank: Ints
    stage: Ints
    worker: Ints
    kind: Texts
    number: Ints
    start: Ints
    end: Ints

    @property
    def duration(self) -> Ints:
        return self.end - self.start


@dataclass(frozen=True)
class Plan:
    """Events by (line, order): `row` is the operation of each ISSUE and JOIN. `computed` are the rows of all computation by (line,
    order), and `before` says how many of these lie before each event."""

    line: Ints
    kind: Ints
    meeting: Ints
    behind: Ints
    row: Ints
    computed: Ints
    before: Ints
    step: Ints

    @property
    def step_of_end(self) -> Ints:
        """The number of the step of each MARK, counted from 0."""
        return np.unique(self.step[self.kind == MARK], return_inverse=True)[1]

    @cached_property
    def _lines(self) -> Lines:
        """Without what differs from one question to the other."""
        count = len(self.line)
        held = self.kind != MARK
        told = {
            "rank": self.line,
            "device": np.zeros(count, np.int64),
            "kind": frames.names(self.kind, KINDS),
            "instance": frames.numbers(self.meeting),
            "behind": frames.numbers(np.where(self.behind == NULL, NULL, np.arange(count) - self.behind)),
            # Times of the step, which all of its lines share: what they tell each other of a collective is when its last part is there.
            "met": pa.array(np.zeros(count, np.int64), mask=~held),
            "origin": np.zeros(count, np.int64),
            "time": np.zeros(count, np.int64),
            "free": np.zeros(count, bool),
            "work": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(9 * count, np.int64)), 9),
        }
        missing = {column.name: pa.nulls(count, column.type) for column in LINE_EVENTS.columns}
        return Lines.of(frames.build(LINE_EVENTS, missing | told))

    def ends(self, duration: Ints, transfer: Ints, pause: Ints) -> Ints:
        """When each MARK is reached, ns from the start of its step, where each operation takes `duration` or, communication, `transfer`
        from when its last part is there, after a pause of the host."""
        done = np.append(0, np.cumsum((duration + pause)[self.computed]))[self.before]
        # The GPU alone: a line here has no host that could come late.
        work = np.full((len(done), 3, 3), NEVER)
        work[:, 0, 0] = work[:, 1, 1] = 0
        work[:, 2, 2] = np.diff(done, prepend=0)
        held = np.where(self.kind == ISSUE, pause[self.row], 0)
        took = np.where(self.kind == MARK, NEVER, transfer[self.row])
        played = play(replace(self._lines, work=work, transfer=took, after_gpu=held, after_other=held))
        if played is None:
            raise ValueError("workers that wait for each other in a circle")
        return played.time[self.kind == MARK]


@dataclass
class _Worker:
    """What one stage does in a step, in order."""

    items: list[tuple[int, str, int]] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)

    def add(self, what: int, kind: str = "", number: int = 0, stream: str = "") -> None:
        self.behind.append(self._last.get(stream, NULL) if stream else NULL)
        if stream:
            self._last[stream] = len(self.items)
        self.items.append((what, kind, number))

    @property
    def operations(self) -> list[tuple[str, int]]:
        return [(kind, number) for what, kind, number in self.items if what in (COMPUTE, ISSUE)]


def files_of(repository: Path) -> Callable[[str], bytes]:
    """Reads files of a checkout, or of a git directory without one, by their paths. Raises CalledProcessError for what is not there."""
    if (repository / "data").is_dir():
        return lambda path: (repository / path).read_bytes()
    git = ["git", "--git-dir", str(repository), "show"]
    return lambda path: subprocess.run([*git, f"HEAD:{path}"], check=True, capture_output=True).stdout


def read_job(read: Callable[[str], bytes], name: str) -> tuple[Operations, dict[str, Any]]:
    """The operations of a job, and what StragglerAnalysis says of it."""
    table = pq.read_table(io.BytesIO(read(f"data/trace-{name}.parquet")))
    kinds = np.asarray(table["optype"].cast(pa.string()).to_pylist())
    columns = [table[one].to_numpy().astype(np.int64) for one in (*_COLUMNS, "seq_id", "rank")]
    start, duration = (table[one].to_numpy().astype(np.float64) for one in ("start_ts", "duration"))
    if (table["mc"].to_numpy() > 0).any() or "separate-grads-all-reduce" in kinds:
        raise ValueError(f"{name}: pipelines of several chunks, and gradients reduced meanwhile, are not converted")
    order = np.lexsort((columns[3], kinds, *columns[2::-1]))
    begin, end = (np.rint(1e9 * at).astype(np.int64)[order] for at in (start, start + duration))
    step, rank, stage, number, worker = (one[order] for one in columns)
    told = json.loads(read(f"data/result-{name}.json"))
    return Operations(step, rank, stage, worker, kinds[order], number, begin, end), told


def planned(operations: Operations) -> Plan:
    """Raises ValueError where workers of one stage do not all do the same operations, or others than those of the three jobs."""
    steps, step = np.unique(operations.step, return_inverse=True)
    ranks, stages = int(operations.rank.max()) + 1, int(operations.stage.max()) + 1
    of_step = np.repeat(steps, ranks)
    order = np.lexsort((step * ranks + operations.rank, operations.stage))
    scopes: dict[tuple[str, int, int], int] = {}
    parts: list[Plan] = []
    for stage in range(stages):
        rows = order[operations.stage[order] == stage].reshape(len(of_step), -1)
        parts.append(_of_stage(operations, rows, ranks, of_step, scopes))
    events, computed = (np.cumsum([0, *(len(getattr(one, name)) for one in parts)]) for name in ("kind", "computed"))
    columns = {one.name: np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Plan)}
    place = np.repeat(np.arange(stages), np.diff(events))
    behind = np.where(columns["behind"] == NULL, NULL, columns["behind"] + events[place])
    return Plan(
        **columns
        | {"line": columns["line"] + place * len(of_step), "before": columns["before"] + computed[place]}
        | {"behind": behind, "meeting": _numbered(columns["meeting"])}
    )


def _of_stage(
    operations: Operations, rows: Ints, ranks: int, of_step: Ints, scopes: dict[tuple[str, int, int], int]
) -> Plan:
    """The lines of one stage, whose operations are `rows`, a row for each of the workers; `scopes` numbers what of a step meets."""
    kinds, numbers = operations.kind[rows], operations.number[rows]
    if (kinds != kinds[0]).any() or (numbers != numbers[0]).any():
        raise ValueError("not all workers of a stage do the same")
    place = {name: at for at, name in enumerate(zip(kinds[0].tolist(), numbers[0].tolist(), strict=True))}
    worker = _worker(operations, rows[0])
    if sorted(worker.operations) != sorted(place):
        raise ValueError("other operations than those of the three public jobs")
    what = np.array([one for one, _, _ in worker.items])
    row = rows[:, [place.get((kind, number), 0) for _, kind, number in worker.items]]
    own = what != COMPUTE
    stage = int(operations.stage[rows[0, 0]])
    meets = [_scope(kind, number, stage) for one, kind, number in worker.items if one != COMPUTE]
    scope = np.array([scopes.setdefault(one, len(scopes)) for one, _ in meets])
    line = np.arange(len(rows))[:, None]
    # A meeting of all ranks goes by the number of the first of them.
    meeting = scope * len(rows) + np.where([every for _, every in meets], line - line % ranks, line)
    behind = np.array(worker.behind)[own]
    behind = np.where(behind == NULL, NULL, (np.cumsum(own) - 1)[np.maximum(behind, 0)] + line * own.sum())
    columns = {
        "line": line,
        "kind": what[own],
        "meeting": np.where(what[own] == MARK, NULL, meeting),
        "behind": behind,
        "row": row[:, own],
        "before": np.cumsum(~own)[own] + line * (~own).sum(),
        "step": of_step[:, None],
    }
    flat = {name: np.broadcast_to(one, meeting.shape).reshape(-1) for name, one in columns.items()}
    return Plan(**flat, computed=row[:, ~own].reshape(-1))


def _worker(operations: Operations, rows: Ints) -> _Worker:
    """What waits for what in one step of a worker; `rows` are its operations."""
    kinds, numbers = operations.kind[rows], operations.number[rows]
    names = set(zip(kinds.tolist(), numbers.tolist(), strict=True))
    computed = np.flatnonzero(np.char.endswith(kinds, "-compute"))
    computed = computed[np.lexsort((kinds[computed], numbers[computed], operations.start[rows][computed]))]
    order = [
        (kind.split("-")[0], number)
        for kind, number in zip(kinds[computed].tolist(), numbers[computed].tolist(), strict=True)
    ]
    turn = next(at for at, (direction, _) in enumerate(order) if direction == "backward")
    worker = _Worker()

    def hand_over(kind: str, number: int, stream: str = "") -> None:
        if (kind, number) in names:
            worker.add(ISSUE, kind, number, stream or kind)

    def wait(kind: str, number: int) -> None:
        if (kind, number) in names:
            worker.add(JOIN, kind, number)

    gathered, reduced = (sorted(number for kind, number in names if kind == one) for one in (_GATHER, _REDUCE))
    for number in gathered:
        hand_over(_GATHER, number, "data")
    hand_over("forward-recv", 0)
    if turn < 2:
        hand_over("backward-recv", 0)
    for at, (direction, number) in enumerate(order):
        if at == order.index(("forward", 0)) and gathered:
            wait(_GATHER, gathered[-1])
        wait(f"{direction}-recv", number)
        worker.add(COMPUTE, f"{direction}-compute", number)
        hand_over(f"{direction}-send", number)
        hand_over(f"{direction}-recv", number + 1)
        if at == turn - 2:
            hand_over("backward-recv", 0)
    worker.add(COMPUTE, "gc")
    worker.add(COMPUTE, "layernorm-grads-all-reduce")
    hand_over(_TIED, 0)
    wait(_TIED, 0)
    for number in reduced:
        hand_over(_REDUCE, number, "data")
    if reduced:
        wait(_REDUCE, reduced[-1])
    hand_over(_CLIP, 0)
    wait(_CLIP, 0)
    worker.add(COMPUTE, "optimizer")
    worker.add(MARK)
    return worker


def _scope(kind: str, number: int, stage: int) -> tuple[tuple[str, int, int], bool]:
    """Which collective of a step an operation is part of, and whether all ranks of the data parallelism are in it."""
    if kind.endswith(("-send", "-recv")):
        direction, side = kind.split("-")
        sender = stage if side == "send" else stage - 1 if direction == "forward" else stage + 1
        return (direction, number, sender), False
    return (kind, number, stage if kind in (_GATHER, _REDUCE) else NULL), kind in (_GATHER, _REDUCE, _CLIP)


def _numbered(meeting: Ints) -> Ints:
    """The collectives numbered without gaps."""
    numbers = np.full(len(meeting), NULL)
    held = meeting != NULL
    numbers[held] = np.unique(meeting[held], return_inverse=True)[1]
    return numbers


def transfers(operations: Operations, plan: Plan) -> Ints:
    """ns from the last one's start to each operation's end, 0 for computation."""
    issue = plan.kind == ISSUE
    rows, meeting = plan.row[issue], plan.meeting[issue]
    last = np.full(meeting.max() + 1, np.iinfo(np.int64).min)
    np.maximum.at(last, meeting, operations.start[rows])
    took = operations.end[rows] - last[meeting]
    result = np.zeros(len(operations.step), np.int64)
    result[rows] = np.where(took <= -_EARLY_NS, 0, took)
    return result


def delays(operations: Operations, plan: Plan) -> Ints:
    """ns from when all that an operation waits for was done to its start, as recorded: what its host took for it."""
    events = plan.before + np.arange(len(plan.row))
    after = np.searchsorted(plan.before, np.arange(len(plan.computed)), side="right")
    computed = np.arange(len(plan.computed)) + after
    line = np.empty(len(events) + len(computed), np.int64)
    line[events], line[computed] = plan.line, plan.line[after]
    # Lines one after the other on one axis, so that one running maximum serves all of them.
    apart = line * (int(operations.end.max()) + 1)
    done = np.zeros(len(line), np.int64)
    done[computed] = operations.end[plan.computed]
    done[events] = np.where(plan.kind == JOIN, operations.end[plan.row], 0)
    reached = np.append(0, np.maximum.accumulate(done + apart)[:-1])
    reached = np.maximum(reached - apart, 0)
    issue = plan.kind == ISSUE
    rows, behind = plan.row[issue], plan.behind[issue]
    before = np.where(behind == NULL, 0, operations.end[plan.row[np.maximum(behind, 0)]])
    result = np.zeros(len(operations.step), np.int64)
    result[plan.computed] = operations.start[plan.computed] - reached[computed]
    result[rows] = operations.start[rows] - np.maximum(reached[events][issue], before)
    return result
