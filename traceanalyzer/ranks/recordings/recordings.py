"""The files of an analysis, sorted into jobs and into recordings of them: what may be compared with what.

Files are of one job when none says what another denies, and of one recording when they were made at the same time, as far as their
clocks count from a common zero.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

import pyarrow as pa

from traceanalyzer.columns.frames import Key
from traceanalyzer.model.trace import EPOCH_NS, Input, file_names
from traceanalyzer.ranks.collectives.alignment import MOST_APART_NS
from traceanalyzer.records import dataclass

MOST_RANKS = 1 << 20
"""No job has more; a file that says so is damaged."""

Span = tuple[int, int]


@dataclass
class File:
    """One input. `size` is the number of its job's ranks, `library` what they communicate with; None where the file is silent.

    `models` are the names of its GPUs by device, `windows` their windows in ns since the epoch, where it is known when that was.
    """

    ordinal: int
    rank: int | None
    name: str
    size: int | None
    library: str | None
    models: dict[int, str | None] = field(default_factory=dict)
    windows: dict[int, Span] = field(default_factory=dict)

    @property
    def window(self) -> Span | None:
        """From the first to the last GPU operation."""
        return around(self.windows.values()) if self.windows else None

    @property
    def silence(self) -> int:
        """How little the file says of its job."""
        return (self.size, self.library).count(None)

    def may_be_with(self, other: File) -> bool:
        """Whether both can be of one job. Of a job with a single rank, each file is another one."""
        pairs = ((self.size, other.size), (self.library, other.library))
        return 1 not in (self.size, other.size) and all(a == b or None in (a, b) for a, b in pairs)


def files_of(inputs: Sequence[Input], ledger: pa.Table) -> list[File]:
    """The files in the order of their ordinals; `ledger` has the windows of all of them."""
    names = file_names(inputs)
    files = {
        i.ordinal: File(
            i.ordinal, i.rank, names[i.ordinal], i.world_size if 0 < (i.world_size or 0) <= MOST_RANKS else None, i.job
        )
        for i in inputs
    }
    bases = {i.ordinal: i.clock_base_ns for i in inputs}
    for row in ledger.select(["rank", "device", "name", "start_ns", "end_ns"]).to_pylist():
        file, base = files[row["rank"]], bases[row["rank"]]
        file.models[row["device"]] = row["name"]
        if base is not None or row["start_ns"] >= EPOCH_NS:
            file.windows[row["device"]] = (row["start_ns"] + (base or 0), row["end_ns"] + (base or 0))
    return [files[ordinal] for ordinal in sorted(files)]


def by_job(files: Sequence[File]) -> list[list[File]]:
    """The files of each job, the largest first; in it the file that says most, which speaks for the job.

    A file that says less is of the only job that it can be of; where it can be of several, all such files are taken for one more.
    """
    found: list[list[File]] = []
    for file in sorted(files, key=lambda file: (file.silence, file.ordinal)):
        alike = [job for job in found if (job[0].size, job[0].library) == (file.size, file.library) and file.size != 1]
        fits = alike or [job for job in found if job[0].may_be_with(file)]
        if len(fits) == 1:
            fits[0].append(file)
        else:
            found.append([file])
    return sorted(found, key=lambda job: (-len(job), min(file.ordinal for file in job)))


def by_time(files: Sequence[File]) -> list[list[File]]:
    """The files of one job by recording, in the order of time, each in the order of the ordinals.

    Those without a clock are of the only recording, else of one of their own.
    """
    timed = sorted((file for file in files if file.window), key=lambda file: file.window or (0, 0))
    rest = [file for file in files if not file.window]
    found: list[list[File]] = []
    for part in _cut(timed, MOST_APART_NS):
        # A program that records again soon leaves two recordings of each rank, which lie closer together.
        closer = list(_cut(part, 0)) if repeated_ranks(part) else [part]
        found += [part] if any(map(repeated_ranks, closer)) else closer
    if rest:
        found = [[*found[0], *rest]] if len(found) == 1 else [*found, rest]
    return [sorted(part, key=lambda file: file.ordinal) for part in found]


def _cut(files: Sequence[File], gap: int) -> Iterator[list[File]]:
    """Files sorted by their windows, cut where nothing was recorded for more than `gap` ns."""
    part: list[File] = []
    last = 0
    for file in files:
        start, end = file.window or (0, 0)
        if part and start - last > gap:
            yield part
            part = []
        last = max(last, end) if part else end
        part.append(file)
    if part:
        yield part


def repeated_ranks(files: Iterable[File]) -> set[int]:
    """The ranks that several of the files say they are."""
    return {rank for rank, count in Counter(file.rank for file in files).items() if rank is not None and count > 1}


def missing(files: Sequence[File]) -> tuple[int, ...]:
    """The ranks of a job that no file is of; none where its size is not known, or where files without a rank may be they."""
    size, here = files[0].size or 0, {file.rank for file in files}
    return () if None in here else tuple(rank for rank in range(size) if rank not in here)


def shared_gpus(files: Sequence[File], devices: pa.Table) -> tuple[tuple[Key, ...], ...]:
    """Groups of (ordinal, device) that are one GPU and used it at the same time, told by the GPU's id in the event table `devices`.

    Nothing else tells it: a device's number counts what one process may see.
    """
    windows = {(file.ordinal, device): span for file in files for device, span in file.windows.items()}
    users: defaultdict[str, set[Key]] = defaultdict(set)
    for row in devices.select(["rank", "device", "uuid"]).to_pylist():
        key = (row["rank"], row["device"])
        if row["uuid"] and key in windows:
            users[_plain(row["uuid"])].add(key)
    groups = [part for same in users.values() for part in _overlapping({key: windows[key] for key in same})]
    return tuple(sorted(group for group in groups if len(group) > 1))


def unplaced_gpus(files: Sequence[File], devices: pa.Table) -> tuple[tuple[Key, ...], ...]:
    """Groups of (ordinal, device) that are one GPU of several ranks, of which nobody can tell whether they used it at the same time: at
    least one file does not say when its clock began. Files without a rank may as well be captures one after another."""
    worked = {(file.ordinal, device): file for file in files if file.rank is not None for device in file.models}
    users: defaultdict[str, dict[Key, File]] = defaultdict(dict)
    for row in devices.select(["rank", "device", "uuid"]).to_pylist():
        key = (row["rank"], row["device"])
        if row["uuid"] and key in worked:
            users[_plain(row["uuid"])][key] = worked[key]
    several = (same for same in users.values() if len({file.rank for file in same.values()}) > 1)
    return tuple(sorted(tuple(sorted(same)) for same in several if any(not file.windows for file in same.values())))


def _plain(uuid: str) -> str:
    return uuid.lower().removeprefix("gpu-")


def _overlapping(windows: dict[Key, Span]) -> Iterator[tuple[Key, ...]]:
    """The keys whose windows hang together."""
    part: list[Key] = []
    last = 0
    for key in sorted(windows, key=lambda key: windows[key]):
        start, end = windows[key]
        if part and start >= last:
            yield tuple(sorted(part))
            part = []
        last = max(last, end) if part else end
        part.append(key)
    yield tuple(sorted(part))


def around(spans: Iterable[Span]) -> Span:
    """From the first start to the last end."""
    starts, ends = zip(*spans, strict=True)
    return min(starts), max(ends)
