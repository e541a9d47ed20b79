"""What the object around the events says: devices, rank, clock and who wrote the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from traceanalyzer.ingest.contract import FileFacts
from traceanalyzer.ingest.formats.kineto import columns as col


def devices(metadata: Mapping[str, Any]) -> pa.Table | None:
    """Rows of `devices` for the GPUs that the file describes, each once; None when it describes none."""
    by_number: dict[int, dict[str, Any]] = {}
    for described in _list(metadata.get("deviceProperties")):
        if isinstance(described, dict) and (number := _whole(described.get("id"), 1 << 31)) is not None:
            by_number.setdefault(number, described)
    if not by_number:
        return None
    found = by_number.values()
    numbers = col.Integers()
    return pa.table(
        {
            "device": pa.array(by_number, pa.int32()),
            "name": col.texts(_text(d.get("name")) for d in found),
            "compute_major": numbers.column([d.get("computeMajor") for d in found], pa.int32()),
            "compute_minor": numbers.column([d.get("computeMinor") for d in found], pa.int32()),
            "sm_count": numbers.column([d.get("numSms") for d in found], pa.int32()),
            "memory": numbers.column([d.get("totalGlobalMem") for d in found]),
            "uuid": pa.array([_text(d.get("uuid")) for d in found], pa.string()),
        }
    )


def facts(metadata: Mapping[str, Any], process: int | None, rank: int | None = None) -> FileFacts:
    """What the file says of itself; `process` is that of the GPU rows, `rank` the one that its events tell."""
    job = metadata.get("distributedInfo")
    job = job if isinstance(job, dict) else {}
    told = _whole(job.get("rank"), 1 << 31)
    rank = rank if told is None else told
    return FileFacts(
        producer=_producer(metadata),
        process=process,
        rank=rank,
        world_size=_whole(job.get("world_size"), 1 << 31),
        clock_base_ns=_whole(metadata.get("baseTimeNanoseconds")),
        rank_source=None if rank is None else "content",
        job=_job(job),
        versions=_versions(metadata, job),
    )


def _job(described: Mapping[str, Any]) -> str | None:
    """What every rank of a job says alike besides its size. The list of groups is not: each rank may name only its own."""
    backend, version = (_text(described.get(name)) for name in ("backend", "nccl_version"))
    return f"{backend} {version}" if backend and version else None


def _versions(metadata: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, str]:
    """Of CUDA, its driver and NCCL. CUDA writes 12.4 as 12040."""
    found = {"NCCL": _text(job.get("nccl_version"))}
    for name, key in (("CUDA", "cuda_runtime_version"), ("CUDA driver", "cuda_driver_version")):
        number = _whole(metadata.get(key), 1 << 31)
        found[name] = f"{number // 1000}.{number % 1000 // 10}" if number else None
    return {name: version for name, version in found.items() if version}


def _producer(metadata: Mapping[str, Any]) -> str:
    if "schemaVersion" not in metadata and "deviceProperties" not in metadata:
        return "Chrome trace"
    for key, library in (("cupti_version", "CUPTI"), ("roctracer_version", "roctracer")):
        if key in metadata:
            return f"PyTorch profiler (Kineto, {library} {metadata[key]})"
    return "PyTorch profiler (Kineto)"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: Any, below: int = 1 << 63) -> int | None:
    """A whole number from 0 on, also written as 8.0 or as a string; None for anything else."""
    if (isinstance(value, str) and value.isdecimal() and len(value) < 20) or (
        isinstance(value, float) and value.is_integer()
    ):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below else None
