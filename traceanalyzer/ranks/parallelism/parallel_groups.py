"""What each rank sends in each of its process groups, and how the job as a whole is made parallel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from traceanalyzer.derive import frames
from traceanalyzer.derive.frames import NULL
from traceanalyzer.ranks.parallelism.tables import PROCESS_GROUPS


def process_groups(communication: pa.Table) -> pa.Table:
    """One row for each GPU, process group and kind of parallelism; of each GPU those with most exposed time first."""
    numbers = {
        c: frames.ints(communication, c) for c in ("rank", "device", "group_size", "bytes", "step", "exposed_wait")
    }
    texts = [frames.codes(communication, c)[0] for c in ("group", "group_ranks", "parallelism")]
    kind, kinds = frames.codes(communication, "kind")
    code = frames.dense(*(numbers[c] for c in ("rank", "device", "group_size")), *texts)
    frame = pd.DataFrame({"code": code, "row": np.arange(len(code)), "kind": kind})
    frame["time"], frame["exposed"] = frames.duration(communication), frames.ints(communication, "exposed")
    stepped = numbers["step"] != NULL
    frame["step"] = np.where(stepped, numbers["step"], np.nan)
    frame["bytes"] = np.where(stepped & (numbers["bytes"] != NULL), numbers["bytes"], 0)
    frame["sized"] = stepped & (numbers["bytes"] != NULL)
    frame["waited"] = numbers["exposed_wait"] != NULL
    frame["exposed_wait"] = np.where(frame["waited"], numbers["exposed_wait"], 0)
    sums = {c: (c, "sum") for c in ("time", "exposed", "exposed_wait", "bytes", "sized", "waited")}
    found = frame.groupby("code").agg(
        row=("row", "first"), collectives=("row", "size"), stepped=("step", "count"), steps=("step", "nunique"), **sums
    )
    found["kinds"] = [
        ", ".join(sorted({kinds[k] or "unknown" for k in own})) for own in frame.groupby("code")["kind"].unique()
    ]
    for c in ("rank", "device"):
        found[c] = numbers[c][found["row"]]
    found = found.sort_values(["rank", "device", "exposed", "row"], ascending=[True, True, False, True])
    own = communication.take(pa.array(found["row"].to_numpy()))
    steps = found["steps"].to_numpy(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_step, size = found["stepped"].to_numpy() / steps, np.round(found["bytes"].to_numpy() / steps)
    return frames.build(
        PROCESS_GROUPS,
        {c: own[c] for c in ("rank", "device", "group", "group_ranks", "group_size", "parallelism")}
        | {c: found[c].to_numpy(np.int64) for c in ("collectives", "steps", "time", "exposed")}
        | {
            "kinds": pa.array(found["kinds"].tolist(), pa.string()),
            "per_step": pa.array(per_step, mask=steps == 0),
            "bytes_per_step": pa.array(size, mask=found["sized"].to_numpy() == 0),
            "exposed_wait": pa.array(found["exposed_wait"].to_numpy(np.int64), mask=found["waited"].to_numpy() == 0),
        },
    )


def describe_job(process_groups: pa.Table) -> list[dict[str, Any]]:
    """One row for each kind of parallelism and group size of all ranks together, those with most exposed time first.

    `parallelism` and `group_size` are None where that is not told; `gpus` take part in `groups` groups; `per_step` and
    `bytes_per_step` are those of the median GPU, None without steps or sizes; `time`, `exposed` and `exposed_wait` are sums in ns, the
    last one None where no wait is known.
    """
    alike: dict[tuple[str | None, int | None], list[dict[str, Any]]] = {}
    for row in process_groups.to_pylist():
        alike.setdefault((row["parallelism"], row["group_size"]), []).append(row)
    rows = []
    for (parallelism, size), own in alike.items():
        gpus = {(row["rank"], row["device"]) for row in own}
        rows.append(
            {
                "parallelism": parallelism,
                "group_size": size,
                "groups": _groups(own, len(gpus)),
                "gpus": len(gpus),
                "kinds": sorted({kind for row in own for kind in row["kinds"].split(", ")}),
                "per_step": _median_gpu(own, "per_step"),
                "bytes_per_step": _median_gpu(own, "bytes_per_step"),
                **{name: sum(row[name] for row in own) for name in ("time", "exposed")},
                "exposed_wait": _sum(row["exposed_wait"] for row in own),
            }
        )
    return sorted(
        rows, key=lambda row: (-row["exposed"], -row["time"], str(row["parallelism"]), row["group_size"] or 0)
    )


def _groups(own: list[dict[str, Any]], gpus: int) -> int:
    """How many groups of a kind: by their ranks where these are told, else as many as so many GPUs fill."""
    ranks, names, size = {row["group_ranks"] for row in own}, {row["group"] for row in own}, own[0]["group_size"]
    if None not in ranks:
        return len(ranks)
    return -(-gpus // size) if size else len(names)


def _median_gpu(own: list[dict[str, Any]], column: str) -> float | None:
    """The median over the GPUs of what each has in all its groups; None where no GPU knows."""
    by_gpu: dict[tuple[int, int], list[float | None]] = {}
    for row in own:
        by_gpu.setdefault((row["rank"], row["device"]), []).append(row[column])
    known = [total for values in by_gpu.values() if (total := _sum(values)) is not None]
    return float(np.median(known)) if known else None


def _sum(values: Iterable[Any]) -> Any:
    """The sum of those that are known; None where none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
