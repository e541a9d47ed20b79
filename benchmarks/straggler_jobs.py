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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.replay.replay import NEVER
from traceanalyzer.ranks.replay import tables
from traceanalyzer.ranks.replay.play import KINDS, Lines, play

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.str_]
COMPUTE = -1
ISSUE, JOIN, MARK = (KINDS.index(kind) for kind in (tables.ISSUE, tables.JOIN, tables.MARK))
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
    """What was recorded, one value an operation, by (step, rank, stage, kind, number); times in ns from the start of the step. `rank` is
    that of the data parallelism, `worker` the job's."""

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

    def ends(self, duration: Ints, transfer: Ints, pause: Ints) -> Ints:
        """When each MARK is reached, ns from the start of its step, where each operation takes `duration` or, communication, `transfer`
        from when its last part is there, after a pause of the host."""
        issue = self.kind == ISSUE
        done = np.append(0, np.cumsum((duration + pause)[self.computed]))[self.before]
        # The GPU alone: a line here has no host that could come late.
        work = np.full((len(done), 3, 3), NEVER)
        work[:, 0, 0] = work[:, 1, 1] = 0
        work[:, 2, 2] = np.diff(done, prepend=0)
        first = np.flatnonzero(np.diff(self.line, prepend=-1, append=-1))
        part = np.full(len(duration), -1)
        part[self.row[issue]] = np.flatnonzero(issue)
        held, never, zero = np.where(issue, pause[self.row], NEVER), np.full(len(done), NEVER), np.zeros(len(done), np.int64)
        lines = Lines(
            first=first,
            kind=self.kind,
            work=work,
            meeting=np.where(self.kind == MARK, -1, self.meeting),
            follows=np.where(issue & (self.behind != NULL), self.behind, -1),
            part=np.where(self.kind == JOIN, part[self.row], -1),
            by_host=never,
            after_gpu=held,
            after_other=held,
            met=zero,
            transfer=np.where(self.kind == MARK, NEVER, transfer[self.row]),
            free=zero.astype(bool),
            host_time=never,
            step=self.step,
            time=zero,
        )
        played = play(lines)
        assert played is not None
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
    """Raises ValueError where workers of one stage do not all do the same operations."""
    steps, step = np.unique(operations.step, return_inverse=True)
    ranks, stages = int(operations.rank.max()) + 1, int(operations.stage.max()) + 1
    count = len(steps) * ranks
    shift = step * ranks + operations.rank
    scopes: dict[tuple[str, int, int], int] = {}
    parts: list[tuple[Ints, ...]] = []
    events = computed = 0
    for stage in range(stages):
        of_stage = np.flatnonzero(operations.stage == stage)
        rows = of_stage[np.argsort(shift[of_stage], kind="stable")].reshape(count, -1)
        names = list(zip(operations.kind[rows[0]].tolist(), operations.number[rows[0]].tolist(), strict=True))
        if (operations.kind[rows] != operations.kind[rows[0]]).any() or (np.diff(operations.number[rows], axis=0)).any():
            raise ValueError(f"stage {stage}: not all workers do the same")
        worker = _worker(operations, rows[0])
        what = np.array([one for one, _, _ in worker.items])
        place = {name: at for at, name in enumerate(names)}
        if sorted(worker.operations) != sorted(names):
            raise ValueError(f"stage {stage}: other operations than in the three public jobs")
        row = np.stack([rows[:, place.get((kind, number), 0)] for _, kind, number in worker.items], axis=1)
        is_event = what != COMPUTE
        where = np.cumsum(is_event) - 1
        line = np.arange(count)[:, None]
        behind = np.array(worker.behind)[is_event]
        behind = np.where(behind == NULL, NULL, where[np.maximum(behind, 0)] + events + line * is_event.sum())
        meets = [_scope(kind, number, stage) for one, kind, number in worker.items if one != COMPUTE]
        number = np.array([scopes.setdefault(one[0], len(scopes)) for one in meets])
        all_ranks = np.array([one[1] for one in meets])
        meeting = number * count + np.where(all_ranks, line - line % ranks, line)
        meeting = np.where(what[is_event] == MARK, NULL, meeting)
        before = np.cumsum(~is_event)[is_event] + computed + line * (~is_event).sum()
        spread = np.broadcast_to(what[is_event], meeting.shape)
        lines = np.broadcast_to(line + stage * count, meeting.shape)
        told = (lines, spread, meeting, behind, row[:, is_event], before, np.broadcast_to(steps[line // ranks], meeting.shape))
        parts.append(tuple(one.reshape(-1) for one in (*told, row[:, ~is_event])))
        events += meeting.size
        computed += count * int((~is_event).sum())
    line, kind, meeting, behind, row, before, at, rows = (np.concatenate(one) for one in zip(*parts, strict=True))
    return Plan(line, kind, _numbered(meeting), behind, row, rows, before, at)


def _worker(operations: Operations, rows: Ints) -> _Worker:
    """What waits for what in one step of a worker; `rows` are its operations."""
    kinds, numbers = operations.kind[rows], operations.number[rows]
    names = set(zip(kinds.tolist(), numbers.tolist(), strict=True))
    computed = np.flatnonzero(np.char.endswith(kinds, "-compute"))
    computed = computed[np.lexsort((kinds[computed], numbers[computed], operations.start[rows][computed]))]
    order = [(kind.split("-")[0], number) for kind, number in zip(kinds[computed].tolist(), numbers[computed].tolist(), strict=True)]
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
