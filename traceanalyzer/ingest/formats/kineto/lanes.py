"""What the names of a process and a thread, and the name of an event on it, say in traces of XLA and TensorFlow."""

from __future__ import annotations

import re
from functools import lru_cache

from traceanalyzer.ingest.formats.kineto.copies import copy_kind, memory_kind
from traceanalyzer.ingest.formats.kineto.vendors import by_process
from traceanalyzer.ingest.rows import classify
from traceanalyzer.records import dataclass

HOST, GPU, REPEATED, FOREIGN = "host", "gpu", "repeated", "foreign"

_GPU_PROCESS = re.compile(r"(?:^|/)(?:device:)?gpu[:/](\d+)(?:/stream:(\d+))?", re.IGNORECASE)
_STREAM = re.compile(r"Stream #(\d+)")
_COPY = re.compile(r"mem ?cpy|copy ?(?:host|device|peer)", re.IGNORECASE)
_SET = re.compile(r"mem ?set", re.IGNORECASE)
# "$core.py:317 f" and "$builtins len" (XLA), "f (/a/b.py:12)" (VizTracer).
_FRAME = re.compile(r"\$|[^()]+ \([^()]*\.py:\d+\)$")


@dataclass(frozen=True)
class Lane:
    """A thread: on the host, a stream of a GPU, one that only repeats what streams show, or one of a `device` that is not read."""

    kind: str
    gpu: int = 0
    stream: int = 0
    device: str = ""


def lane_of(process: str | None, thread: str | None) -> Lane:
    """What the names say; None where there is no name."""
    if process is None:
        return Lane(HOST)
    if device := by_process(process):
        return Lane(FOREIGN, device=device)
    found = _GPU_PROCESS.search(process)
    if not found:
        return Lane(HOST)
    stream = found[2] or next(iter(_STREAM.findall(thread or "")), None)
    return Lane(REPEATED) if stream is None else Lane(GPU, int(found[1]), int(stream))


def is_gpu(process: str) -> bool:
    """Whether the threads of a process of this name have to be told apart by their own names."""
    return _GPU_PROCESS.search(process) is not None


def range_category(name: str) -> str:
    """The category of a range on the host."""
    return "python" if _FRAME.match(name) else "annotation"


def operation_kind(name: str) -> str:
    """The kind of an operation on a stream."""
    if _SET.match(name):
        return "memset"
    return "memcpy" if _COPY.match(name) else "kernel"


def operation_class(name: str) -> str:
    return classify.kernel_class(name) if operation_kind(name) == "kernel" else classify.COMPUTE


def operation_copy(name: str) -> str | None:
    """The direction of a copy, None for other operations."""
    return copy_kind(name) if operation_kind(name) == "memcpy" else None


def call_class(name: str) -> str:
    """The class of the call that started an operation; XLA names it after the operation."""
    known = classify.api_class(name)
    if known != "other" or name.startswith(("cu", "hip")):
        return known
    return "launch" if operation_kind(name) == "kernel" else "copy"


@dataclass(frozen=True)
class Details:
    """What XLA tells of an operation in one string."""

    bytes: int | None = None
    src_memory: str | None = None
    dst_memory: str | None = None
    grid: list[int] | None = None
    block: list[int] | None = None
    registers: int | None = None
    shared_memory: int | None = None


@lru_cache(maxsize=1 << 12)
def details_of(text: str | None) -> Details:
    """From "regs:28 static_shared:0 dynamic_shared:64 grid:8,1,1 block:128,1,1" or "kind_src:pinned kind_dst:device size:4"."""
    said = dict(part.split(":", 1) for part in (text or "").split() if ":" in part)
    shared = [_number(said.get(key)) for key in ("static_shared", "dynamic_shared")]
    copied = "size" in said and "kind_src" in said
    return Details(
        bytes=_number(said.get("size")),
        src_memory=memory_kind(said["kind_src"]) if copied else None,
        dst_memory=memory_kind(said.get("kind_dst", "")) if copied else None,
        grid=_sizes(said.get("grid")),
        block=_sizes(said.get("block")),
        registers=_number(said.get("regs")),
        shared_memory=None if None in shared else sum(n for n in shared if n is not None),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\d{1,18}", text) else None


def _sizes(text: str | None) -> list[int] | None:
    numbers = [_number(part) for part in (text or "").split(",")]
    return [n for n in numbers if n is not None] if None not in numbers else None
