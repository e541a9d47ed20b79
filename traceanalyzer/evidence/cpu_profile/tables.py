"""The tables of a CPU profile: threads, frames, stacks and samples.

Times are nanoseconds of the profiler's own clock, less the marks' `clock_base_ns` where it counts from the epoch. Weights are what the
profile counts in: nanoseconds, or samples where it knows no time. Numbers of threads, frames and stacks mean something within one rank.
"""

from __future__ import annotations

import pyarrow as pa

from traceanalyzer.model.schema import NAME, Column, TableSpec

RANK = Column("rank", pa.int32(), None, "rank of the job, or the file's ordinal when the rank is unknown")
THREAD = Column("thread", pa.int32(), None, "number of the thread in the profile")

ABOUT = TableSpec(
    "profile_about",
    "one CPU profile: what wrote it, and what its samples tell",
    (
        RANK,
        Column(
            "form",
            NAME,
            None,
            "form of the file: speedscope, py-spy chrometrace, viztracer, perf script, austin, pprof or folded",
        ),
        Column("producer", NAME, None, "the profiler that wrote it"),
        Column("unit", NAME, None, "what weights are counted in: ns or samples"),
        Column("period", pa.int64(), "ns", "how far its samples are apart; null when not known"),
        Column("timed", pa.bool_(), None, "true: samples have times, on whatever clock"),
        Column("epoch", pa.bool_(), None, "true: their times count from the epoch"),
        Column("stretches", pa.bool_(), None, "true: a sample holds from its time on for as long as its weight says"),
        Column("idle_kept", pa.bool_(), None, "true: threads that wait were sampled too; null when not known"),
        Column(
            "ordered", pa.bool_(), None, "true: the samples of a thread stand in the order in which they were taken"
        ),
        Column("lost", NAME, None, "what is missing at its beginning, in words; null when nothing is known to be"),
    ),
)
THREADS = TableSpec(
    "profile_threads",
    "one thread of a CPU profile",
    (
        RANK,
        THREAD,
        Column("process", pa.int64(), None, "process as the system numbers it; null when not recorded"),
        Column("tid", pa.int64(), None, "thread as the system or the profiler numbers it; null when not recorded"),
        Column("name", NAME, None, "its name; null when not recorded"),
    ),
)
FRAMES = TableSpec(
    "profile_frames",
    "one frame of the stacks of a CPU profile; each different one once",
    (
        RANK,
        Column("frame", pa.int32(), None, "number of the frame"),
        Column("name", NAME, None, "function"),
        Column("file", NAME, None, "file, or module without one, as recorded; null when not recorded"),
        Column(
            "line",
            pa.int32(),
            None,
            "line that ran, or where the function begins, as its profiler records; null when not recorded",
        ),
        Column(
            "kind", NAME, None, "own (the user's code), library, import (of Python's import system), native or other"
        ),
    ),
)
STACKS = TableSpec(
    "profile_stacks",
    "one stack of a CPU profile: a frame inside of another stack; each different one once",
    (
        RANK,
        Column("stack", pa.int32(), None, "number of the stack"),
        Column(
            "parent",
            pa.int32(),
            None,
            "number of the stack around its innermost frame, which is lower; null at the top",
        ),
        Column("frame", pa.int32(), None, "its innermost frame"),
    ),
)
SAMPLES = TableSpec(
    "profile_samples",
    "one sample of a thread, or a stretch of time in which its stack stayed the same",
    (
        RANK,
        THREAD,
        Column("time_ns", pa.int64(), "ns", "when it was taken, or when the stretch began; null when not recorded"),
        Column("weight", pa.int64(), None, "how much it stands for, in the unit of the profile"),
        Column("stack", pa.int32(), None, "its stack; null for one without frames"),
    ),
)
TABLES = (ABOUT, THREADS, FRAMES, STACKS, SAMPLES)
