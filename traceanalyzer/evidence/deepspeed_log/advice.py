"""What to record next time so that DeepSpeed's logs tell more, and what that does to the run."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyzer.model.tables import Tables
from traceanalyzer.result.recording.diagnosis import Setting


def advice(tables: Tables) -> Iterator[Setting]:
    """One setting for each of DeepSpeed's instruments that was not on."""
    runs = tables.table("deepspeed_run").to_pylist()
    if not runs:
        return
    if not any(run["timers"] for run in runs):
        yield Setting(
            "DeepSpeed's timers",
            '"wall_clock_breakdown": true in DeepSpeed\'s configuration',
            "how long the forward pass, the backward pass, the reduction of gradients and the optimizer's step take, step by step",
            "the host waits for the GPU after each step and micro-batch",
            "Switch it off for runs that are to be fast.",
            [],
        )
    if not any(run["profiler"] for run in runs):
        yield Setting(
            "DeepSpeed's flops profiler",
            '"flops_profiler": {"enabled": true, "profile_step": 6, "output_file": "flops_profile.txt"}',
            "operations, parameters and time of each module in the forward pass of one step",
            "the host waits for the GPU around each module in that step",
            "Leave the profiled step out of traces and of timings; under ZeRO-3 parameters are those of a shard.",
            [],
        )
    if not any(run["comms"] for run in runs):
        yield Setting(
            "DeepSpeed's comms logger",
            '"comms_logger": {"enabled": true}, and deepspeed.comm.log_summary(show_straggler=True) at the end',
            "how many collectives of which sizes there are",
            "the host waits for the GPU after every collective, so that none overlaps computation",
            "From DeepSpeed 0.18.4 on its latencies are sums over all earlier calls, and steps get longer over the run. "
            "A trace tells better.",
            [],
        )
    if not any(run["version"] for run in runs):
        yield Setting(
            "the beginning of the log",
            "DeepSpeed's messages from deepspeed.initialize on (log level INFO)",
            "its version, the ZeRO stage and the sizes of batches",
            "nothing",
            None,
            [],
        )
