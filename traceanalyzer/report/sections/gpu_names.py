"""What the page says of its input files and of the ranks that they hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import count, islice, takewhile
from pathlib import PurePosixPath, PureWindowsPath

from traceanalyzer.columns import integers
from traceanalyzer.model.tables import Tables
from traceanalyzer.redaction.paths import NOTHING, without_places
from traceanalyzer.report.timeline.lanes import RankName, table_or_none
from traceanalyzer.report.timeline.timeline import Layout
from traceanalyzer.result.document import Result
from traceanalyzer.result.ranks import rank_list
from traceanalyzer.result.words.gpu_names import device_name, gpu_namer, gpu_of
from traceanalyzer.units import format_count

_SEPARATORS = re.compile(r"[/\\]+")
_SEVERAL_WORDS = re.compile(r"\w[_.-]\w")
LEAST_DEPTH = 3
"""Of an absolute path the parts, the empty one before the root among them, that lead to a folder in a folder of everybody's."""
LONGEST = 32
"""Of longer file names the middle is left out where they stand for a GPU."""


def input_names(result: Result) -> list[str]:
    """File names only: a path can name a person or a host."""
    return [PureWindowsPath(PurePosixPath(item.path).name).name for item in result.inputs]


def job_folder(result: Result) -> str | None:
    """The name of the innermost folder that all of several inputs lie in, without where it lies. None for a single file, where no
    folder is named, and where it may be called after somebody."""
    paths = [item.path for item in result.inputs]
    if len(paths) < 2:
        return None
    folders = [_SEPARATORS.split(path)[:-1] for path in paths]
    shared = [parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))]
    if not any(shared):
        return None
    folder = "/".join(shared) if "://" not in paths[0] else f"{shared[0]}//{'/'.join(shared[1:])}"
    shown = _SEPARATORS.split(without_places(folder))[-1]
    # Folders right below those that many share may be people's; these are seldom called by several words.
    if shown == NOTHING and len(shared) > LEAST_DEPTH and _SEVERAL_WORDS.search(shared[-1]) and "home" not in shared:
        shown = shared[-1]
    return shown if shown == shared[-1] and shown.strip(".…~") and not shown.endswith(":") else None


def title(names: list[str]) -> str:
    """What the page is called unless the user says otherwise."""
    if not names:
        return "GPU time report"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def rank_namer(result: Result) -> Callable[[int], str]:
    """Whose a rank of the tables is, which is a number of the file's own when the job's is not known: "rank 3", else the name of the
    file where there are several; empty for the only one."""
    known = {rank for device in result.devices for rank in device.used_by}
    files = _files(result) if len(result.inputs) > 1 else {}
    return lambda rank: f"rank {rank}" if rank in known else files.get(rank, "")


def gpu_labels(result: Result, tables: Tables | None, rank_name: RankName) -> list[str]:
    """What to call each of `result.devices`: by its rank or, of several files that do not say theirs, by its file, which only the
    tables tell."""
    ledger = None if tables is None else table_or_none(tables, "ledger")
    numbers = [] if ledger is None else zip(*(integers(ledger, c).tolist() for c in ("rank", "device")), strict=True)
    labels = [gpu_of(rank_name(rank), device) for rank, device in numbers]
    return labels if len(labels) == len(result.devices) else [device_name(device) for device in result.devices]


def gpu_names(result: Result, labels: list[str]) -> list[str]:
    """The same as shortly as possible: "rank 3" where that is enough, its label where several are called alike."""
    namer = gpu_namer(result.devices)
    names = [namer(device.rank, device.device) for device in result.devices]
    alike = Counter(names)
    return [label if alike[name] > 1 else name for name, label in zip(names, labels, strict=True)]


def _files(result: Result) -> dict[int, str]:
    """The name of each file by the number that the tables have for it: its rank, or one that is free where it has none of its own."""
    ranks = {item.rank for item in result.inputs if item.rank is not None}
    free = islice((number for number in count() if number not in ranks), len(result.inputs) - len(ranks))
    return dict(zip(sorted([*ranks, *free]), map(_short, input_names(result)), strict=True))


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-(LONGEST // 2) :]}"


def rank_claims(result: Result) -> Counter[int]:
    """How many files say that they are a rank of the job, for each rank that any of them does."""
    return Counter(item.rank for item in result.inputs if item.rank is not None)


def timeline_ranks(result: Result, timeline: Layout | None) -> str | None:
    """Which ranks the timeline shows, for example "8 of 512 ranks: 0-6, 300"; None when it shows all of them."""
    if timeline is None:
        return None
    known = {rank for device in result.devices for rank in device.used_by}
    every, shown = len(result.inputs), {group.rank for group in timeline.groups}
    if known:
        every, shown = len(known), shown & known
    what = "ranks" if known else "files"
    return (
        f"{format_count(len(shown))} of {format_count(every)} {what}: {rank_list(shown, 16)}"
        if len(shown) < every
        else None
    )
