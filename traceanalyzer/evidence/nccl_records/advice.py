"""What to record next time so that NCCL's records tell more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from traceanalyzer.evidence.nccl_records.tables import INSPECTOR, RECORDER
from traceanalyzer.result.recording.diagnosis import Setting

_BUFFER = "TORCH_FR_BUFFER_SIZE"
_OLDER = "Before PyTorch 2.8 it is TORCH_NCCL_TRACE_BUFFER_SIZE, which later versions know as well."


def advice(tables: Mapping[str, pa.Table]) -> Iterator[Setting]:
    """One setting for each thing that this file lacks."""
    dumps, calls = tables["nccl_dumps"], tables["nccl_calls"]
    sources = set(dumps["source"].to_pylist())
    if RECORDER in sources:
        yield from _of_recorder(dumps, calls)
    if INSPECTOR in sources and calls.num_rows and calls["created_ns"].null_count == calls.num_rows:
        yield Setting(
            "times of NCCL Inspector",
            "NCCL_INSPECTOR_DUMP_VERBOSE=1",
            "when each collective was called and when it ran, so which rank came late by how much",
            "longer lines, one for each collective",
            None,
            [],
        )


def _of_recorder(dumps: pa.Table, calls: pa.Table) -> Iterator[Setting]:
    if not pc.sum(dumps["entries"]).as_py():
        yield Setting(
            "calls of the flight recorder",
            f"{_BUFFER}=2000, and a dump with its calls (`includeCollectives`, not `onlyActive`)",
            "each collective with its number, size, state and the line that called it",
            "some microseconds a collective, and some hundred bytes of host memory",
            _OLDER,
            [],
        )
        return
    if pc.any(dumps["lost_beginning"]).as_py():
        yield Setting(
            "a longer ring of the flight recorder",
            f"a larger {_BUFFER}",
            "the calls that the ring lost, and so more that all ranks' records have in common",
            "some hundred bytes of host memory a call",
            _OLDER,
            [],
        )
    if calls["duration"].null_count == calls.num_rows:
        yield Setting(
            "times on the GPU",
            "TORCH_NCCL_ENABLE_TIMING=1",
            "when each collective began and how long it took: who waited for whom, whatever the clocks say",
            "two more CUDA events a collective",
            None,
            [],
        )
    if calls["place"].null_count == calls.num_rows:
        yield Setting(
            "Python stacks",
            "`includeStackTraces=True` of `torch._C._distributed_c10d._dump_nccl_trace`, the pickle and not JSON",
            "the line of the program that called each collective",
            "the time to name the stacks, when it is dumped",
            None,
            [],
        )
    if calls["state"].null_count < calls.num_rows:
        yield Setting(
            "a dump when a job hangs",
            "TORCH_NCCL_DUMP_ON_TIMEOUT=1, with TORCH_FR_DUMP_TEMP_FILE=/shared/nccl_trace_rank_",
            "records of all ranks from the moment in which the watchdog gave up, in one folder",
            "nothing while nothing hangs",
            "Before PyTorch 2.8 the file is TORCH_NCCL_DEBUG_INFO_TEMP_FILE.",
            [],
        )
