"""Writes small Kineto traces: GPU operations with or without launches, host ranges and calls, in microseconds."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

PROCESS, MAIN, AUTOGRAD = 100, 100, 101


class KinetoTrace:
    """Collects events; every method returns the trace, so that calls chain."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.metadata: dict[str, Any] = {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "Test GPU", "numSms": 100, "totalGlobalMem": 1 << 34}],
        }
        self._correlation = 0

    def add(self, **event: Any) -> KinetoTrace:
        self.events.append({"ph": "X", "pid": PROCESS, "tid": MAIN, **event})
        return self

    def op(
        self,
        start: float,
        end: float,
        *,
        launch: tuple[float, float] | None = None,
        api: str = "cudaLaunchKernel",
        thread: int = MAIN,
        name: str = "gemm",
        category: str = "kernel",
        stream: int = 7,
        device: int = 0,
        **args: Any,
    ) -> KinetoTrace:
        """A GPU operation and, with `launch` = (start, end), the call that started it."""
        self._correlation += 1
        common = {"device": device, "context": 1, "stream": stream, "correlation": self._correlation}
        self.add(cat=category, name=name, pid=device, tid=stream, ts=start, dur=end - start, args={**common, **args})
        if launch:
            self.call(api, *launch, thread=thread, correlation=self._correlation)
        return self

    def call(self, name: str, start: float, end: float, *, thread: int = MAIN, **args: Any) -> KinetoTrace:
        return self.add(cat="cuda_runtime", name=name, tid=thread, ts=start, dur=end - start, args=args)

    def range(
        self, name: str, start: float, end: float, *, category: str = "user_annotation", thread: int = MAIN
    ) -> KinetoTrace:
        return self.add(cat=category, name=name, tid=thread, ts=start, dur=end - start)

    def text(self) -> str:
        return json.dumps({**self.metadata, "traceEvents": self.events})

    def write(self, path: Path) -> Path:
        """Write to `path`, compressed when its name ends in .gz."""
        data = self.text().encode()
        path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
        return path


def steady(count: int, first: float = 0.0) -> KinetoTrace:
    """Kernels of 900 us, one a millisecond, each launched 20 us earlier."""
    trace = KinetoTrace()
    for n in range(count):
        start = first + n * 1000
        trace.op(start, start + 900, launch=(start - 20, start - 15))
    return trace
