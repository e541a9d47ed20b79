"""Who is who: each file's rank, what told it, and its number in the tables.

A rank comes from the content. Where that is silent, the names of the files may tell it, but only all of them together: a number in one
name may be anything. It never comes from the number of a device, which counts what one process may see.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import PurePath
from threading import Event

from traceanalyzer.ingest.bytes.containers import Condition
from traceanalyzer.ingest.bytes.source import Source
from traceanalyzer.ingest.contract import FileFacts, Marks
from traceanalyzer.model.trace import Input, RankSource, Role, Witness
from traceanalyzer.records import dataclass

# What stands before a rank, the surest first. The first that any of the names has decides.
_WORDS = tuple(
    re.compile(rf"(?<![a-z0-9])(?<!local[_.-])(?<!node[_.-]){word}[ _.=-]?(\d{{1,6}})(?!\d)", re.IGNORECASE)
    for word in ("rank", "worker", "r")
)
_DIGITS = re.compile(r"(\d+)")
# What counts something else than ranks, when it stands before a number.
_OTHERS = re.compile(
    r"(gpu|device|cuda|(local|node)[_.-]?rank|node|host|step|iter\w*|epoch|cycle|batch|run|trial|stage|part)s?[ _.=-]?$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Identity:
    """Who a file is. `ordinal` is the value of the tables' `rank` column, and of no other file that is kept.

    A file that is not `kept` is a copy of an earlier one, which counts its `copies`.
    """

    ordinal: int
    rank: int | None
    source: RankSource | None
    kept: bool = True
    copies: int = 0


def identify(
    sources: Sequence[Source], facts: Sequence[FileFacts], digest: Callable[[int], str] | None = None
) -> list[Identity]:
    """One identity a file, in the order given.

    The ordinal is the rank where one file says it; of several files that do, the first has it, and the others get free numbers, as do
    files without a rank. `digest` gives what the copies of the file at a position share; without it they are read again.
    Raises InputError where a file has to be read again and cannot be.
    """
    paths = [PurePath(source.path) for source in sources]
    ranks = [fact.rank for fact in facts]
    origins = [fact.rank_source for fact in facts]
    for at, number in ranks_in_names(paths, facts).items():
        ranks[at], origins[at] = number, "name"
    originals = _originals(ranks, digest or (lambda at: _digest(sources[at])))
    copies = Counter(originals.values())
    taken = set(ranks)
    free = (number for number in count() if number not in taken)
    found: list[Identity] = []
    used: set[int] = set()
    for at, rank in enumerate(ranks):
        if at in originals:
            found.append(replace(found[originals[at]], kept=False, copies=0))
            continue
        ordinal = next(free) if rank is None or rank in used else rank
        used.add(ordinal)
        found.append(Identity(ordinal, rank, origins[at], copies=copies[at]))
    return found


def identify_all(
    sources: Sequence[Source],
    kinds: Sequence[str],
    roles: Sequence[Role],
    facts: Sequence[FileFacts],
    digest: Callable[[int], str] | None = None,
) -> list[Identity]:
    """As `identify`, for traces and evidence of several `kinds` together: evidence takes no rank's number from a trace, and comes last.

    What the names of files tell, and which are copies, is judged among the files of one kind.
    """
    traces = [at for at, role in enumerate(roles) if role == "trace"]
    groups = [traces, *({kind: _at(kinds, roles, kind) for kind in sorted(set(kinds))}).values()]
    found: dict[int, Identity] = {}
    for group in groups:
        if not group:
            continue
        taken = {one.ordinal for one in found.values()}
        free = (number for number in count(max(taken, default=-1) + 1))
        own = identify([sources[at] for at in group], [facts[at] for at in group], digest and _within(group, digest))
        new = {one.ordinal: one.ordinal if not taken else next(free) for one in own if one.kept}
        for at, one in zip(group, own, strict=True):
            found[at] = replace(one, ordinal=new.get(one.ordinal, one.ordinal))
    return [found[at] for at in range(len(sources))]


def _within(group: Sequence[int], digest: Callable[[int], str]) -> Callable[[int], str]:
    return lambda at: digest(group[at])


def _at(kinds: Sequence[str], roles: Sequence[Role], kind: str) -> list[int]:
    return [at for at, one in enumerate(kinds) if one == kind and roles[at] != "trace"]


def _witness(facts: FileFacts, role: Role) -> Witness | None:
    if role == "trace":
        return None
    if not isinstance(facts, Marks):
        return Witness(role)
    pids, gpus = tuple(sorted(facts.pids)), tuple(sorted(facts.gpus))
    return Witness(role, facts.host, pids, gpus, facts.clock, facts.clock_error_ns)


def input_of(
    source: Source, format_: str, facts: FileFacts, identity: Identity, sha256: str, role: Role = "trace"
) -> Input:
    """What the trace keeps of a file."""
    return Input(
        path=source.shown,
        sha256=sha256,
        bytes=source.size,
        format=format_,
        producer=facts.producer,
        rank=identity.rank,
        world_size=facts.world_size,
        ordinal=identity.ordinal,
        clock_base_ns=facts.clock_base_ns,
        rank_source=identity.source,
        job=facts.job,
        copies=identity.copies,
        versions=dict(facts.versions),
        traits=tuple(sorted(facts.traits)),
        traced=tuple(sorted(facts.traced)),
        recorded_ns=facts.recorded_ns,
        bounded=facts.bounded,
        witness=_witness(facts, role),
    )


def ranks_in_names(paths: Sequence[PurePath], facts: Sequence[FileFacts]) -> dict[int, int]:
    """Position -> rank of the files whose content tells none, where their names do: all of them, each another one.

    The number follows `rank`, `worker` or `r` in each name, or in that of its folder; or the names differ in nothing but one number,
    which counts from 0 and not steps, GPUs or the like. A file alone, or one of several processes, has no rank in its name; and where a
    file's content contradicts its name, no name is believed.
    """
    silent = [at for at, fact in enumerate(facts) if fact.rank is None]
    if len(paths) < 2 or not silent or any(facts[at].several for at in silent):
        return {}
    told = {at: fact.rank for at, fact in enumerate(facts) if fact.rank is not None}
    names = [[path.name for path in paths], [path.parent.name for path in paths]]
    for texts in names:
        for word in _WORDS:
            found = {at: matches for at, text in enumerate(texts) if (matches := word.findall(text))}
            if not any(at in found for at in silent):
                continue
            if any(len(found.get(at, ())) != 1 for at in silent):
                return {}
            numbers = {at: int(matches[0]) for at, matches in found.items() if len(matches) == 1}
            return _consistent(silent, numbers, told, facts)
    return _consistent(silent, _counted(names[0]), told, facts)


def _consistent(
    silent: Sequence[int], numbers: dict[int, int], told: dict[int, int], facts: Sequence[FileFacts]
) -> dict[int, int]:
    """The numbers of the silent files, if they can be their ranks."""
    ranks = [numbers[at] for at in silent if at in numbers]
    sizes = [fact.world_size for fact in facts if fact.world_size is not None]
    if len(ranks) < len(silent) or len({*ranks, *told.values()}) < len(ranks) + len(set(told.values())):
        return {}
    if any(rank >= size for rank in ranks for size in sizes):
        return {}
    if any(at in numbers and numbers[at] != rank for at, rank in told.items()):
        return {}
    return {at: numbers[at] for at in silent}


def _counted(texts: Sequence[str]) -> dict[int, int]:
    """The number by which names differ that are the same apart from it, if it counts from 0; by position."""
    parts = [_DIGITS.split(text) for text in texts]
    if len({len(part) for part in parts}) != 1:
        return {}
    columns = list(zip(*parts, strict=True))
    differing = [place for place, column in enumerate(columns) if len(set(column)) > 1]
    # Every second part is a number.
    if len(differing) != 1 or not differing[0] % 2 or _OTHERS.search(columns[differing[0] - 1][0]):
        return {}
    numbers = [int(text) for text in columns[differing[0]]]
    return dict(enumerate(numbers)) if sorted(numbers) == list(range(len(texts))) else {}


def _originals(ranks: Sequence[int | None], digest: Callable[[int], str]) -> dict[int, int]:
    """Position of a file -> that of an earlier one with the same rank and content. Only files that share a rank are compared."""
    by_rank: dict[int, list[int]] = {}
    for at, rank in enumerate(ranks):
        if rank is not None:
            by_rank.setdefault(rank, []).append(at)
    originals: dict[int, int] = {}
    for files in by_rank.values():
        first: dict[str, int] = {}
        for at in files if len(files) > 1 else ():
            kept = first.setdefault(digest(at), at)
            if kept != at:
                originals[at] = kept
    return originals


def _digest(source: Source) -> str:
    """What two copies of a file share, however they are packed. A report that was converted is known by the report."""
    if source.place != source.origin:
        return source.sha256(Event())
    digest = hashlib.sha256()
    for block in source.blocks(Condition()):
        digest.update(block)
    return digest.hexdigest()
