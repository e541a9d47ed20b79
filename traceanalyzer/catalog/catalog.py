"""All tables of a trace by name: event tables as they are, derived ones computed once, on demand.

Each derived table is a function of the inputs it declares and gets nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa

from traceanalyzer.derive.copies.copies import copies
from traceanalyzer.derive.copies.copy_bursts import copy_bursts
from traceanalyzer.derive.copies.readbacks import readbacks
from traceanalyzer.derive.frames import Key
from traceanalyzer.derive.host.callers import Callers
from traceanalyzer.derive.host.host import INPUT_PATTERNS, Host, waits
from traceanalyzer.derive.host.other_threads import other_threads, side_threads
from traceanalyzer.derive.kernels.attention import attention_blocks
from traceanalyzer.derive.kernels.gpu_metrics import gpu_metrics
from traceanalyzer.derive.kernels.kernel_chains import kernel_chains
from traceanalyzer.derive.kernels.kernel_pace import kernel_pace
from traceanalyzer.derive.kernels.kernels import kernel_stats, kernels
from traceanalyzer.derive.ledger.busy import busy, communication_ops, ledger_ops
from traceanalyzer.derive.ledger.clocks import clocks, launches
from traceanalyzer.derive.ledger.gaps import gaps
from traceanalyzer.derive.ledger.launch_calls import launch_calls
from traceanalyzer.derive.ledger.launches import links
from traceanalyzer.derive.ledger.ledger import ledger, ledger_intervals
from traceanalyzer.derive.ledger.shared import Portion
from traceanalyzer.derive.ledger.windows import windows
from traceanalyzer.derive.memory.memory import memory_growth, memory_stats
from traceanalyzer.derive.operators.host_stats import operator_stats, sync_stats
from traceanalyzer.derive.operators.patterns import operator_shapes, patterns
from traceanalyzer.derive.recording.health import health
from traceanalyzer.derive.recording.outside import outside_work, recordings
from traceanalyzer.derive.recording.program import program
from traceanalyzer.derive.replay.idle_places import IdlePlaces
from traceanalyzer.derive.replay.profiler_cost import ProfilerCost
from traceanalyzer.derive.replay.replay import timelines
from traceanalyzer.derive.replay.unprofiled import unprofiled_steps
from traceanalyzer.derive.replay.whatif import WhatIf
from traceanalyzer.derive.steps.step_growth import step_growth
from traceanalyzer.derive.steps.step_ledger import step_ledger
from traceanalyzer.derive.steps.steps import host_steps, step_calls, step_ops, step_stats
from traceanalyzer.derive.streams.default_stream import held_work
from traceanalyzer.derive.trees.call_trees import call_trees
from traceanalyzer.derive.work.work import work_names, work_ops, work_shapes, work_units
from traceanalyzer.model.trace import Trace
from traceanalyzer.ranks.collectives.classes import gpu_ops
from traceanalyzer.ranks.collectives.tables import (
    COLLECTIVE_WAITS,
    COMMUNICATION,
    LATE_WINDOWS,
    MATCHES,
    PROCESS_GROUPS,
)
from traceanalyzer.ranks.mpi.mpi_exposed import mpi_call_waits
from traceanalyzer.ranks.mpi.mpi_parts import mpi_parts
from traceanalyzer.ranks.mpi.staged import staged_messages
from traceanalyzer.ranks.mpi.tables import MPI_MATCHES, MPI_WAITS
from traceanalyzer.ranks.waits.late import late_names, late_work
from traceanalyzer.ranks.waits.rank_work import excess, extra_work, rank_work
from traceanalyzer.ranks.waits.waited import own_intervals, waited_intervals


# The modules about collectives need pandas, which takes long to import; only traces that hold any import them.
def _communication_kernels(communication_ops: pa.Table, *others: Any) -> pa.Table:
    if not communication_ops.num_rows:
        return COMMUNICATION.empty()
    from traceanalyzer.ranks.collectives.communication import communication_kernels

    return communication_kernels(communication_ops, *others)


def _matches(kernels: pa.Table, *others: Any) -> pa.Table:
    if not kernels.num_rows:
        return MATCHES.empty()
    from traceanalyzer.ranks.collectives.matches import matches

    return matches(kernels, *others)


def _late_windows(matches: pa.Table) -> pa.Table:
    if not matches.num_rows:
        return LATE_WINDOWS.empty()
    from traceanalyzer.ranks.collectives.matches import late_windows

    return late_windows(matches)


def _communication(kernels: pa.Table, *others: Any) -> pa.Table:
    if not kernels.num_rows:
        return kernels
    from traceanalyzer.ranks.collectives.communication import communication

    return communication(kernels, *others)


def _collective_waits(communication: pa.Table, *others: Any) -> pa.Table:
    if not communication.num_rows:
        return COLLECTIVE_WAITS.empty()
    from traceanalyzer.ranks.waits.waits import collective_waits

    return collective_waits(communication, *others)


def _mpi_matches(mpi_parts: pa.Table, *others: Any) -> pa.Table:
    if not mpi_parts.num_rows:
        return MPI_MATCHES.empty()
    from traceanalyzer.ranks.mpi.mpi_matches import mpi_matches

    return mpi_matches(mpi_parts, *others)


def _mpi_late_windows(mpi_matches: pa.Table) -> pa.Table:
    if not mpi_matches.num_rows:
        return LATE_WINDOWS.empty()
    from traceanalyzer.ranks.mpi.mpi_matches import late_windows

    return late_windows(mpi_matches)


def _mpi_waits(mpi_call_waits: pa.Table, *others: Any) -> pa.Table:
    if not mpi_call_waits.num_rows:
        return MPI_WAITS.empty()
    from traceanalyzer.ranks.mpi.mpi_waits import mpi_waits

    return mpi_waits(mpi_call_waits, *others)


def _process_groups(communication: pa.Table) -> pa.Table:
    if not communication.num_rows:
        return PROCESS_GROUPS.empty()
    from traceanalyzer.ranks.parallelism.parallel_groups import process_groups

    return process_groups(communication)


# What each derived table is made from. Not tables for rules, but shared by several: the threads' interval sets (`host`), the calls that
# waited for the GPU (`waits`), the unions of each GPU's operations (`busy`), the operations on the ledger, which keep the columns of
# gpu_ops, and `links`, which are the launches before those that the clocks contradict are left out.
DERIVED: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "gpu_ops": (gpu_ops, ("recorded_ops", "host_ranges", "communication_patterns")),
    "ledger_ops": (ledger_ops, ("gpu_ops",)),
    "busy": (busy, ("ledger_ops",)),
    "links": (links, ("ledger_ops", "api_calls")),
    "launch_calls": (launch_calls, ("api_calls", "links", "ledger_ops")),
    "clocks": (clocks, ("links", "api_calls")),
    "launches": (launches, ("links", "clocks")),
    "health": (
        health,
        (
            *("recorded_health", "gpu_ops", "ledger_ops", "launch_calls", "clocks", "launches", "overheads", "steps"),
            *("gaps", "windows", "api_calls", "host_ranges", "inputs", "profiler_cost"),
        ),
    ),
    "waits": (waits, ("api_calls", "launches", "gpu_ops")),
    "host": (
        Host,
        (
            *("api_calls", "waits", "host_ranges", "overheads", "steps", "launches", "gpu_ops", "input_patterns"),
            *("cpu_samples", "thread_runs"),
        ),
    ),
    "windows": (windows, ("ledger_ops", "devices", "steps", "launch_calls", "portions")),
    "gaps": (
        gaps,
        (
            "ledger_ops",
            "launches",
            "api_calls",
            "stream_events",
            "page_faults",
            "host",
            "host_steps",
            "windows",
            "portions",
        ),
    ),
    "ledger_intervals": (ledger_intervals, ("busy", "gaps", "portions")),
    "call_trees": (
        call_trees,
        (
            *("ledger_ops", "busy", "gaps", "windows", "launches", "host", "host_ranges", "api_calls", "cpu_samples"),
            "threads",
        ),
    ),
    "outside_work": (outside_work, ("windows", "launches", "api_calls", "host")),
    "recordings": (
        recordings,
        ("inputs", "windows", "outside_work", "ledger_ops", "api_calls", "host_ranges"),
    ),
    "step_calls": (step_calls, ("steps", "launches", "ledger_ops")),
    "host_steps": (host_steps, ("steps", "step_calls", "ledger_ops")),
    "step_stats": (step_stats, ("host_steps", "step_calls", "launch_calls", "ledger_ops", "links", "windows")),
    "ledger": (
        ledger,
        ("ledger_ops", "busy", "ledger_intervals", "gaps", "launches", "step_stats", "windows", "portions"),
    ),
    "copies": (
        copies,
        ("ledger_ops", "busy", "launches", "host", "devices", "host_ranges", "stream_events", "program"),
    ),
    "held_work": (held_work, ("ledger_ops", "launches", "stream_events", "api_calls", "devices", "program")),
    "copy_bursts": (copy_bursts, ("ledger_ops", "ledger_intervals", "copies", "api_calls")),
    "callers": (Callers, ("host_ranges",)),
    "side_threads": (side_threads, ("host_ranges", "launches")),
    "other_threads": (other_threads, ("gaps", "host", "host_ranges", "side_threads")),
    "readbacks": (readbacks, ("ledger_ops", "busy", "launches", "gaps", "host", "callers")),
    "operator_shapes": (operator_shapes, ("host_ranges",)),
    "operator_stats": (operator_stats, ("host_ranges", "api_calls", "launches")),
    "sync_stats": (sync_stats, ("api_calls", "waits", "gaps")),
    "patterns": (patterns, ("host_ranges", "callers", "launches", "ledger_ops")),
    "communication_ops": (communication_ops, ("ledger_ops",)),
    "communication_kernels": (
        _communication_kernels,
        (
            *(
                "communication_ops",
                "ledger_ops",
                "busy",
                "collectives",
                "launches",
                "host_ranges",
                "host_steps",
                "callers",
            ),
            "api_calls",
        ),
    ),
    "matches": (_matches, ("communication_kernels", "inputs")),
    "rank_work": (rank_work, ("ledger_ops", "step_stats")),
    "extra_work": (extra_work, ("rank_work",)),
    "late_windows": (_late_windows, ("matches",)),
    "late_work": (late_work, ("late_windows", "ledger_intervals", "communication")),
    "late_names": (late_names, ("late_windows", "ledger_intervals", "ledger_ops", "gaps")),
    "excess": (excess, ("step_ledger",)),
    "communication": (_communication, ("communication_kernels", "matches", "busy", "devices")),
    "process_groups": (_process_groups, ("communication",)),
    "collective_waits": (
        _collective_waits,
        ("communication", "matches", "late_work", "late_names", "extra_work", "excess", "ledger", "inputs"),
    ),
    "mpi_parts": (mpi_parts, ("mpi_calls", "host_ranges", "ledger_ops")),
    "mpi_matches": (_mpi_matches, ("mpi_parts", "inputs")),
    "mpi_late_windows": (_mpi_late_windows, ("mpi_matches",)),
    "mpi_call_waits": (mpi_call_waits, ("mpi_matches", "ledger_intervals")),
    "mpi_late_work": (late_work, ("mpi_late_windows", "ledger_intervals", "mpi_call_waits")),
    "mpi_late_names": (late_names, ("mpi_late_windows", "ledger_intervals", "ledger_ops", "gaps")),
    "mpi_waits": (
        _mpi_waits,
        ("mpi_call_waits", "mpi_late_work", "mpi_late_names", "extra_work", "excess", "ledger", "inputs"),
    ),
    "own_intervals": (own_intervals, ("ledger_intervals", "communication", "mpi_call_waits")),
    "waited_intervals": (waited_intervals, ("ledger_intervals", "communication", "mpi_call_waits")),
    "staged_messages": (staged_messages, ("copies", "mpi_parts", "own_intervals")),
    "step_ledger": (step_ledger, ("step_stats", "ledger_intervals", "gaps")),
    "step_growth": (step_growth, ("step_ledger", "ledger_ops", "step_ops", "gaps")),
    "step_ops": (step_ops, ("host_steps", "step_calls")),
    "work_units": (work_units, ("step_ledger", "ledger_ops", "ledger_intervals", "step_ops")),
    "work_ops": (work_ops, ("work_units", "ledger_ops", "step_ops", "step_ledger")),
    "work_names": (work_names, ("work_units", "work_ops", "ledger_ops", "launches", "host", "communication")),
    "work_shapes": (work_shapes, ("host_ranges", "host_steps")),
    "memory_stats": (memory_stats, ("memory_events", "devices")),
    "memory_growth": (memory_growth, ("memory_events", "devices", "host_steps", "callers")),
    "gpu_metrics": (gpu_metrics, ("counters", "ledger_ops", "windows")),
    "kernel_stats": (kernel_stats, ("ledger_ops",)),
    "kernels": (kernels, ("ledger_ops", "devices", "launches", "host", "program")),
    "kernel_pace": (kernel_pace, ("kernels", "counters")),
    "kernel_chains": (kernel_chains, ("ledger_ops", "step_stats")),
    "attention_blocks": (attention_blocks, ("ledger_ops", "launches", "host", "step_stats")),
    "program": (
        program,
        ("inputs", "gpu_ops", "api_calls", "host_ranges", "collectives", "processes", "devices"),
    ),
    "timelines": (timelines, ("ledger_ops", "launches", "host", "windows")),
    "idle_places": (IdlePlaces, ("gaps",)),
    "profiler_cost": (ProfilerCost, ("host_ranges", "api_calls", "inputs")),
    "what_if": (WhatIf, ("timelines", "step_stats", "host", "host_ranges", "profiler_cost")),
    "unprofiled_steps": (unprofiled_steps, ("what_if", "step_stats")),
}
_NO_GPU_WORK = ("gpu_ops", "the trace holds no GPU operations")
_NO_STEPS = "the trace marks no steps that launched GPU work, and none can be told from its launches"
_NO_CALLS = "the trace holds no CUDA or HIP API calls"
_NO_RANGES = "the trace holds no operators, annotations or frames of the host"
_NO_MEMORY = ("memory_events", "the trace holds no memory events")
# Table -> the table that must have rows for it to say something about the program, and what to say when it has none.
NEEDS = {
    "gpu_ops": _NO_GPU_WORK,
    "gaps": _NO_GPU_WORK,
    "ledger": _NO_GPU_WORK,
    "ledger_intervals": _NO_GPU_WORK,
    "api_calls": ("api_calls", _NO_CALLS),
    "launches": ("launches", "no GPU operation can be linked to a launching API call"),
    "host_ranges": ("host_ranges", _NO_RANGES),
    "steps": ("steps", "the trace marks no steps"),
    "step_ledger": ("step_stats", _NO_STEPS),
    "step_stats": ("step_stats", _NO_STEPS),
    "step_growth": ("step_stats", _NO_STEPS),
    "copies": ("copies", "the trace holds no memory copies"),
    "held_work": ("launches", "no GPU operation can be linked to a launching API call"),
    "copy_bursts": ("copies", "the trace holds no memory copies"),
    "readbacks": ("copies", "the trace holds no memory copies"),
    "other_threads": ("side_threads", "the trace holds Python frames of no thread but those that launch"),
    "operator_shapes": ("operator_shapes", "the trace holds no input shapes of operators"),
    "operator_stats": ("host_ranges", _NO_RANGES),
    "sync_stats": ("api_calls", _NO_CALLS),
    "patterns": ("host_ranges", _NO_RANGES),
    "communication": ("communication", "the trace holds no communication kernels"),
    "process_groups": ("communication", "the trace holds no communication kernels"),
    "collective_waits": ("communication", "the trace holds no communication kernels"),
    "mpi_waits": ("mpi_call_waits", "the trace holds no calls of MPI"),
    "staged_messages": ("mpi_parts", "the trace holds no calls of MPI"),
    "collectives": ("collectives", "the trace describes no collectives"),
    "counters": ("counters", "the trace holds no counters"),
    "gpu_metrics": ("gpu_metrics", "the trace holds no samples of the GPU's own metrics (SMs, memory, links)"),
    "memory_events": _NO_MEMORY,
    "memory_stats": _NO_MEMORY,
    "memory_growth": ("memory_growth", "the trace holds no memory events within known steps"),
    "kernel_stats": ("kernel_stats", "the trace holds no kernels"),
    "kernels": ("kernels", "the trace holds no compute kernels"),
    "kernel_pace": ("kernels", "the trace holds no compute kernels"),
    "kernel_chains": ("kernels", "the trace holds no compute kernels"),
    "attention_blocks": ("kernels", "the trace holds no compute kernels"),
}
# Needed table -> how the profiler that writes a format records it, for those to whom that is news.
RECORDED_WITH = {
    "gpu_metrics": {"nsys": "nsys records them with --gpu-metrics-devices=cuda-visible"},
    "memory_events": {
        "kineto": "torch.profiler records them with profile_memory=True",
        "nsys": "nsys records them with --cuda-memory-usage=true",
    },
    "side_threads": {
        "kineto": (
            "torch.profiler records them with with_stack=True and "
            "experimental_config=torch._C._profiler._ExperimentalConfig(profile_all_threads=True)"
        ),
    },
    "operator_shapes": {"kineto": "torch.profiler records them with record_shapes=True"},
}


class Catalog:
    """The tables of one trace. `input_patterns` are extra name patterns of data-loader ranges, `communication_patterns` of kernels that
    communicate.

    `given` are derived tables that somebody who knows more than this trace has made already: what all ranks together tell.
    """

    def __init__(
        self,
        trace: Trace,
        input_patterns: tuple[str, ...] = (),
        given: Mapping[str, pa.Table] | None = None,
        communication_patterns: tuple[str, ...] = (),
    ) -> None:
        self._trace = trace
        self._made: dict[str, Any] = {
            "input_patterns": (*INPUT_PATTERNS, *input_patterns),
            "communication_patterns": communication_patterns,
            "inputs": trace.inputs,
            "recorded_health": trace.table("health"),
            "recorded_ops": trace.table("gpu_ops"),
            "portions": {},
        }
        self.give(given or {})

    def give(self, tables: Mapping[str, pa.Table]) -> None:
        """Use these tables, of which nothing that was asked for so far may be made."""
        self._made.update(tables)

    def keep(self, names: Collection[str]) -> None:
        """Give back the memory of all derived and given tables but these. Others that are asked for are derived anew, of the trace
        alone."""
        self._made = {name: made for name, made in self._made.items() if name in names or name not in DERIVED}

    def share(self, portions: Mapping[Key, Portion]) -> None:
        """What other files on the same GPUs leave to this one; all that is made of the windows is made anew."""
        if not portions and not self._made["portions"]:
            return
        stale = {"portions"}
        while more := {name for name, (_, inputs) in DERIVED.items() if stale.intersection(inputs)} - stale:
            stale |= more
        self._made = {name: made for name, made in self._made.items() if name not in stale}
        self._made["portions"] = portions

    def table(self, name: str) -> pa.Table:
        """An event or derived table. Raises KeyError for an unknown name."""
        if name not in self._made:
            if name not in DERIVED:
                return self._trace.table(name)
            function, inputs = DERIVED[name]
            self._made[name] = function(*(self.table(n) for n in inputs))
        return self._made[name]

    def unavailable(self, name: str) -> str | None:
        """Why an empty table says nothing in this trace; None when it has rows or when being empty is an answer."""
        needed, reason = NEEDS.get(name, (None, None))
        if needed is None or reason is None or self.table(needed).num_rows:
            return None
        formats = {one.format for one in self._made["inputs"]}
        ways = RECORDED_WITH.get(needed, {})
        return "; ".join([reason, *(way for format_, way in ways.items() if format_ in formats)])
