"""What a step of the job would gain without a link of its critical path, until the next path takes over: all lines played again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.derive.replay.stretches import NEVER
from traceanalyzer.ranks.replay.play import MARKS, Lines, Scenario
from traceanalyzer.ranks.replay.tables import PATH_GAINS
from traceanalyzer.ranks.replay.what_if import JobReplay
from traceanalyzer.result.critical_path import TRANSFER

MOST_WRONG = 0.03
"""A job whose steps differ by more from what they were when nothing is taken out is not believed."""
MOST_LINKS = 8
WORTH_SHORTENING = 0.02
MOST_PLAYED = 4_000_000
"""So many events are played in all, but of one link always."""
Link = tuple[int, int, str, str | None]
"""(rank, device, kind, name); of a transfer without rank and device."""


def path_gains(job_path: pa.Table, shorter_lines: pa.Table, job_replay: JobReplay) -> pa.Table:
    """Of the largest links; those of which nothing can be told are left out."""
    lines, error = job_replay.lines, job_replay.error
    if lines is None or error is None or error > MOST_WRONG:
        return PATH_GAINS.empty()
    steps, without = len(set(job_path["step"].to_pylist())), _without(shorter_lines)
    played: list[tuple[Link, int, Scenario]] = []
    most = min(MOST_LINKS, max(MOST_PLAYED // max(len(lines.kind), 1), 1))
    for link, instances, ns in _largest(job_path)[:most]:
        changed = _untransferred(lines, instances) if link[2] == TRANSFER else _shorter(lines, without.get(link))
        if changed is not None:
            played.append((link, ns, Scenario(changed)))
    rows = []
    # The path may be of the last steps only, and what is taken out lies in those.
    marks = lines.line[(lines.kind == MARKS) & (lines.step != NULL)]
    played_steps = max(int(np.bincount(marks).max(initial=0)) - 1, steps)
    for (link, ns, _), found in zip(played, job_replay.predict([one for _, _, one in played]), strict=True):
        if found is not None and found.per_step:
            rank, device, kind, name = link
            on_line = kind != TRANSFER
            rows.append(
                {
                    "rank": rank if on_line else None,
                    "device": device if on_line else None,
                    "kind": kind,
                    "name": name,
                    "gain": min(max(found.now - found.then, 0) * played_steps // steps, ns // steps),
                }
            )
    return pa.Table.from_pylist(rows, PATH_GAINS.schema)


def _largest(path: pa.Table) -> list[tuple[Link, frames.Array, int]]:
    """The links that are worth it, those with most time first, with their collectives and ns."""
    length = frames.duration(path)
    least = WORTH_SHORTENING * int(length.sum())
    (kind, kinds), (name, names) = frames.codes(path, "kind"), frames.codes(path, "name")
    moved, instance = frames.equals(path, "kind", TRANSFER), frames.ints(path, "instance")
    rank, device = (np.where(moved, NULL, frames.ints(path, column)) for column in ("rank", "device"))
    found = []
    for (r, d, k, n), rows in frames.together(rank, device, kind, name):
        ns = int(length[rows].sum())
        if ns >= least:
            found.append(((r, d, kinds[k] or "", names[n]), instance[rows], ns))
    return sorted(found, key=lambda one: -one[2])


def _without(shorter_lines: pa.Table) -> Mapping[Link, pa.Table]:
    """The events of lines without some link, by that."""
    columns = [frames.ints(shorter_lines, column) for column in ("rank", "device", "link")]
    found = {}
    for (rank, device, _), rows in frames.together(*columns):
        own = shorter_lines.slice(int(rows[0]), len(rows))
        found[rank, device, own["kind"][0].as_py(), own["name"][0].as_py()] = own
    return found


def _untransferred(lines: Lines, instances: frames.Array) -> Lines:
    """The lines, these transfers taking no time."""
    none = np.isin(lines.instance, instances) & (lines.transfer != NEVER)
    return replace(lines, transfer=np.where(none, 0, lines.transfer))


def _shorter(lines: Lines, events: pa.Table | None) -> Lines | None:
    """The lines, with these events of one of them."""
    if events is None:
        return None
    of = (lines.rank == frames.ints(events, "rank")[0]) & (lines.device == frames.ints(events, "device")[0])
    at = int(np.flatnonzero(of)[0])
    rows = slice(int(lines.first[at]), int(lines.first[at + 1]))
    if rows.stop - rows.start != events.num_rows:
        return None
    work = lines.work.copy()
    work[rows] = events["work"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(-1, 3, 3)
    changed = {}
    for column in ("by_host", "after_gpu", "after_other", "host_time"):
        values = getattr(lines, column).copy()
        own = frames.ints(events, column)
        values[rows] = np.where(own == NULL, NEVER, own)
        changed[column] = values
    return replace(lines, work=work, **changed)
