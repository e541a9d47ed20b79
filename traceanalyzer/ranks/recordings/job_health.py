"""What is said of files taken together: ranks that are missing, doubled or guessed, and files that do not belong together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

import pyarrow as pa

from traceanalyzer.columns.frames import Key
from traceanalyzer.model.schema import HEALTH
from traceanalyzer.model.trace import Input, file_names
from traceanalyzer.ranks.recordings.recordings import File, around, missing, repeated_ranks
from traceanalyzer.units import format_duration, format_share
from traceanalyzer.vocabulary.health import RANKS_IN_DOUBT
from traceanalyzer.vocabulary.levels import HIGH, INFO, LOW, MEDIUM

MOST_NAMED = 8
"""Stretches of ranks, files and other things that one message names, and doubled ranks that have messages of their own."""

Rows = Iterator[dict[str, object]]
Recordings = Sequence[Sequence[File]]


def health(
    inputs: Sequence[Input],
    files: Sequence[File],
    jobs: Sequence[Recordings],
    shared: Iterable[Sequence[Key]],
    unplaced: Iterable[Sequence[Key]] = (),
) -> pa.Table:
    """Rows of TRC006, without a rank where they are about a whole job. `jobs` has the recordings of each, `shared` as `shared_gpus`,
    `unplaced` as `unplaced_gpus`."""
    parts = [sorted(chain(*recordings), key=lambda file: (file.silence, file.ordinal)) for recordings in jobs]
    rows = [*_copies(inputs), *_named_ranks(inputs), *_several_jobs(parts)]
    for part, recordings in zip(parts, jobs, strict=True):
        rows += [*_times(recordings), *chain(*map(_doubled, recordings)), *_missing(part), *_models(part)]
    by_ordinal = {file.ordinal: file for file in files}
    rows += [*_shared(shared, by_ordinal), *_unplaced(unplaced, by_ordinal)]
    return pa.Table.from_pylist(rows, schema=HEALTH.schema)


def _row(severity: str, message: str, count: int, rank: int | None = None) -> dict[str, object]:
    return {
        "rank": rank,
        "code": RANKS_IN_DOUBT,
        "severity": severity,
        "message": message,
        "count": count,
        "example": None,
    }


def _copies(inputs: Sequence[Input]) -> Rows:
    names = file_names(inputs)
    for one in inputs:
        if one.copies:
            what = "one more file is a copy" if one.copies == 1 else f"{_counted(one.copies)} more files are copies"
            yield _row(LOW, f"{what} of {names[one.ordinal]} and was left out", one.copies, one.ordinal)


def _named_ranks(inputs: Sequence[Input]) -> Rows:
    ranks = [one.rank for one in inputs if one.rank is not None and one.rank_source == "name"]
    if len(ranks) == 1:
        yield _row(INFO, f"that a file is rank {ranks[0]} is taken from its name: its content does not say it", 1)
    elif ranks:
        what = f"the ranks of {_counted(len(ranks))} files ({_listed(ranks)}) are taken from their names"
        yield _row(INFO, f"{what}: their content does not say them", len(ranks))


def _several_jobs(parts: Recordings) -> Rows:
    if len(parts) > 1:
        described = _named(f"{_called(part)} ({_facts(part[0])})" for part in parts)
        message = f"the files are of {_counted(len(parts))} jobs, which are not compared: {described}"
        yield _row(LOW, message, len(parts))


def _facts(file: File) -> str:
    facts = [f"{file.size} rank{'' if file.size == 1 else 's'}"] if file.size is not None else []
    return ", ".join([*facts, *([file.library] if file.library else [])]) or "which say nothing of theirs"


def _times(recordings: Recordings) -> Rows:
    timed = [one for one in recordings if all(file.window for file in one)]
    if len(timed) < 2:
        return
    windows = [around(file.window for file in one if file.window) for one in timed]
    apart = format_duration(max(later[0] - earlier[1] for earlier, later in pairwise(windows)))
    what = f"by their clocks, the files were recorded at {_counted(len(timed))} different times, up to {apart} apart"
    message = f"{what}: {_named(map(_called, timed), ', then ')}; only what was recorded at one time is compared"
    yield _row(LOW, message, len(timed))


def _doubled(recording: Sequence[File]) -> Rows:
    of_rank = {rank: [file for file in recording if file.rank == rank] for rank in sorted(repeated_ranks(recording))}
    if len(of_rank) > MOST_NAMED:
        first, same = next(iter(of_rank.items()))
        what = f"{len(of_rank)} ranks ({_listed(of_rank)}) have several files each, rank {first} for one"
        message = f"{what} {_named(file.name for file in same)}; none of these is compared with other ranks"
        yield _row(MEDIUM, message, len(of_rank))
        return
    for rank, same in of_rank.items():
        what = f"{_counted(len(same))} files say they are rank {rank}: {_named(file.name for file in same)}"
        message = f"{what}; {'neither' if len(same) == 2 else 'none of them'} is compared with other ranks"
        yield from (_row(MEDIUM, message, 1, file.ordinal) for file in same)


def _missing(part: Sequence[File]) -> Rows:
    size, absent = part[0].size, missing(part)
    here = {file.rank for file in part if file.rank is not None}
    silent = sum(file.rank is None for file in part)
    narrowed = "what is said about waiting holds for these ranks only"
    if absent and len(here) == 1:
        message = f"of {size} ranks only rank {min(here)} is here: whom it waited for cannot be told"
        yield _row(INFO, message, len(absent))
    elif absent:
        what = f"{len(here)} of {size} ranks are here; missing: {_listed(absent)}"
        yield _row(LOW, f"{what}; {narrowed}", len(absent))
    elif size is not None and silent and len(here) + silent < size:
        what = f"there are {len(here) + silent} files for {size} ranks, {silent} of them without saying which they are"
        yield _row(LOW, f"{what}; {narrowed}", size - len(here) - silent)


def _models(part: Sequence[File]) -> Rows:
    users: defaultdict[str, list[File]] = defaultdict(list)
    for file in sorted(part, key=lambda file: file.ordinal):
        for model in sorted({model for model in file.models.values() if model}):
            users[model].append(file)
    if len(users) > 1:
        each = _named(f"{model} ({_called(same)})" for model, same in users.items())
        message = f"the GPUs are not all of one kind, and a slower one may be late for no other reason: {each}"
        yield _row(INFO, message, len(users))


def _shared(groups: Iterable[Sequence[Key]], files: dict[int, File]) -> Rows:
    for group in groups:
        who = _called([files[ordinal] for ordinal in sorted({ordinal for ordinal, _ in group})])
        yield _row(INFO, f"{who} used one GPU at the same time: it is idle when none of them uses it", len(group))


def _unplaced(groups: Iterable[Sequence[Key]], files: dict[int, File]) -> Rows:
    for group in groups:
        who = _called([files[ordinal] for ordinal in sorted({ordinal for ordinal, _ in group})])
        message = (
            f"{who} used one GPU, and their files do not all say when their clocks began: when it was idle is not known"
        )
        yield _row(HIGH, message, len(group))


def apart_on_one_gpu(inputs: Sequence[Input], group: Sequence[Key], common: float) -> pa.Table:
    """A row of TRC006: users of one GPU of which too little was recorded at the same time, `common` of it, from 0 to 1."""
    names = file_names(inputs)
    users = {ordinal for ordinal, _ in group}
    files = [File(one.ordinal, one.rank, names[one.ordinal], None, None) for one in inputs if one.ordinal in users]
    message = (
        f"{_called(files)} used one GPU, and only {format_share(common)} of that time was recorded of all of them: "
        "when it was idle is not known"
    )
    return pa.Table.from_pylist([_row(HIGH, message, len(group))], schema=HEALTH.schema)


def _called(files: Sequence[File]) -> str:
    """Files by their ranks where each has its own, else by their names."""
    ranks = {file.rank for file in files if file.rank is not None}
    if len(ranks) < len(files):
        return _named(file.name for file in files)
    return f"rank{'s' if len(ranks) > 1 else ''} {_listed(ranks)}"


def _counted(count: int) -> str:
    return {1: "one", 2: "two", 3: "three"}.get(count, str(count))


def _listed(ranks: Iterable[int]) -> str:
    """Ranks in words: "1, 3, 5-7"."""
    stretches: list[list[int]] = []
    for rank in sorted(ranks):
        if stretches and rank == stretches[-1][1] + 1:
            stretches[-1][1] = rank
        else:
            stretches.append([rank, rank])
    words = [str(a) if a == b else f"{a}-{b}" for a, b in stretches[:MOST_NAMED]]
    left = sum(b - a + 1 for a, b in stretches[MOST_NAMED:])
    return ", ".join(words) + (f" and {left} more" if left else "")


def _named(names: Iterable[str], before_last: str = " and ") -> str:
    """Some names in words: "a, b and c"."""
    *first, last = names
    if len(first) >= MOST_NAMED:
        return f"{', '.join(first[: MOST_NAMED - 1])} and {len(first) + 2 - MOST_NAMED} more"
    return before_last.join([", ".join(first), last]) if first else last
