"""The critical path of the result: of a job that over all its ranks, of a single GPU its own."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.model.tables import Tables
from traceanalyzer.result.critical_path import TRANSFER, CriticalPath, PathKind, PathLink

MOST_LINKS = 100
"""So many links are listed."""


def critical_path_of(tables: Tables, ranks: Mapping[int, int | None], gpus: int) -> CriticalPath | None:
    """None without GPU work, and where there are several GPUs of which nobody knows who waited for whom. `ranks` are the job's by the
    tables'."""
    job = tables.table("job_path")
    if job.num_rows:
        gains = {
            (row["rank"], row["device"], row["kind"], row["name"]): row["gain"]
            for row in tables.table("path_gains").to_pylist()
        }
        links, steps = _of_job(job, ranks, gains)
    elif gpus == 1:
        rows = tables.table("path_links").to_pylist()
        links = [
            PathLink(
                ranks[row["rank"]],
                row["device"],
                row["kind"],
                row["name"],
                row["duration"],
                row["gain"],
                row["deviation"],
            )
            for row in rows
        ]
        steps = rows[0]["steps"] or 0 if rows else 0
    else:
        return None
    return _path(links, steps) if links else None


def _path(links: list[PathLink], steps: int) -> CriticalPath:
    kinds: dict[tuple[int | None, int | None, str], int] = {}
    for link in links:
        key = link.rank, link.device, link.kind
        kinds[key] = kinds.get(key, 0) + link.ns
    order = sorted(kinds.items(), key=lambda one: (-one[1], str(one[0])))
    left = links[MOST_LINKS:]
    return CriticalPath(
        step_count=steps,
        ns=sum(link.ns for link in links),
        kinds=[PathKind(*key, ns) for key, ns in order],
        links=links[:MOST_LINKS],
        left=len(left),
        left_ns=sum(link.ns for link in left),
    )


def _of_job(
    path: pa.Table, ranks: Mapping[int, int | None], gains: Mapping[tuple[int | None, int | None, str, str | None], int]
) -> tuple[list[PathLink], int]:
    """The links over all ranks, those with most time first, and how many steps they are of. A transfer is on no single GPU. `gains` are
    what is gained without them, per step."""
    step = frames.ints(path, "step")
    numbers, at = np.unique(step, return_inverse=True)
    length = frames.duration(path)
    (kind, kinds), (name, names) = frames.codes(path, "kind"), frames.codes(path, "name")
    on = frames.equals(path, "kind", TRANSFER)
    rank, device = (np.where(on, frames.NULL, frames.ints(path, column)) for column in ("rank", "device"))
    links = []
    for (of_rank, of_device, of_kind, of_name), rows in frames.together(rank, device, kind, name):
        sums = np.bincount(at[rows], length[rows], len(numbers))
        gpu = (None, None) if of_rank == frames.NULL else (of_rank, of_device)
        gain = gains.get((*gpu, kinds[of_kind] or "", names[of_name]))
        links.append(
            PathLink(
                rank=None if gpu[0] is None else ranks[gpu[0]],
                device=gpu[1],
                kind=kinds[of_kind] or "",
                name=names[of_name],
                ns=int(length[rows].sum()),
                gain_ns=None if gain is None else gain * len(numbers),
                deviation_ns=round(float(sums.std(ddof=1))) if len(numbers) > 1 else None,
            )
        )
    links.sort(key=lambda link: (-link.ns, link.kind, link.name or "", str(link.rank)))
    return links, len(numbers)
