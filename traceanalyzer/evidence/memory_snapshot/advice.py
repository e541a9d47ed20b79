"""What to record next time so that a memory snapshot tells more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.result.recording.diagnosis import Setting

_RECORD = "torch.cuda.memory._record_memory_history"


def advice(tables: Mapping[str, pa.Table]) -> Iterator[Setting]:
    """One setting for each thing that this snapshot lacks."""
    totals, frames = tables.get("snapshot_totals"), tables.get("snapshot_frames")
    if totals is None or not totals.num_rows:
        return
    if not pc.max(totals["entries"]).as_py():
        yield Setting(
            "the allocator's history",
            f"{_RECORD}(max_entries=200_000, stacks='python') before the first step",
            "when each block was allocated and freed, and where: the peak, what grows, and what is only there for a moment",
            "some microseconds an allocation, and some hundred bytes of host memory an entry",
            "Without stacks='python' the stacks are of C++ too, which takes many times as long.",
            [],
        )
        return
    if pc.any(totals["lost_beginning"]).as_py():
        yield Setting(
            "a longer history",
            f"a larger max_entries of {_RECORD}, called before the model is built",
            "the blocks from before the history, and a peak that may lie there",
            "some hundred bytes of host memory an entry",
            None,
            [],
        )
    if frames is None or not pc.any(frames["user"]).as_py():
        yield Setting(
            "Python stacks",
            f"stacks='python' of {_RECORD}",
            "the line of the program that asked for each block",
            "some microseconds an allocation",
            "Blocks allocated in the backward pass carry no Python frames either way.",
            [],
        )
