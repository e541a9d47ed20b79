"""Inputs that grow in one dimension: a table of generators, each of which writes what it is asked for with `n` of something.

Sizes are such that the largest takes some ten seconds where the cost is in proportion to the input.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

Event = dict[str, Any]
PID = 900
LAYERS = 50
LONG = 5_000


@dataclass(frozen=True)
class Dimension:
    """What grows: `write(path, n)` makes an input of `n` of it at `path`, and `most` is the largest `n`."""

    write: Callable[[Path, int], None]
    most: int


def host(name: str, at: float, dur: float, cat: str = "cpu_op", tid: int = PID, **args: Any) -> Event:
    """A range on a thread of the program."""
    return {"ph": "X", "cat": cat, "name": name, "pid": PID, "tid": tid, "ts": at, "dur": dur, "args": args}


def launch(number: int, at: float, device: int = 0, stream: int = 7, name: str = "kernel", **args: Any) -> list[Event]:
    """A call at `at` µs and the kernel that it launches, 5 µs later for 4 µs."""
    run = {"device": device, "stream": stream, "correlation": number, **args}
    return [
        host("cudaLaunchKernel", at, 3, "cuda_runtime", correlation=number),
        {"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": stream, "ts": at + 5, "dur": 4, "args": run},
    ]


def few_launches() -> list[Event]:
    """What makes a trace of anything."""
    return [event for number in range(1, 20) for event in launch(number, 20 * number)]


def step(number: int, at: float, dur: float) -> Event:
    return host(f"ProfilerStep#{number}", at, dur, "user_annotation")


def events(make: Callable[[int], Iterator[Event]]) -> Callable[[Path, int], None]:
    """A writer of traces with the events that `make(n)` gives, behind a few launches."""

    def write(path: Path, n: int) -> None:
        with path.open("w") as file:
            file.write('{"traceEvents": [')
            file.writelines(json.dumps(event) + ",\n" for event in chain(few_launches(), make(n)))
            file.write(json.dumps(host("last", 400, 1)) + "]}")

    return write


def around(make: Callable[[int], str]) -> Callable[[Path, int], None]:
    """A writer of traces with a member of metadata on both sides of a few events."""

    def write(path: Path, n: int) -> None:
        path.write_text(f'{{"a": {make(n)}, "traceEvents": {json.dumps(few_launches())}, "b": {make(n)}}}')

    return write


def long_names(category: str) -> Callable[[int], Iterator[Event]]:
    return lambda n: (host(f"{i}{'x' * LONG}", 500 + i, 0.5, category) for i in range(n))


def long_kernels(n: int) -> Iterator[Event]:
    return (event for i in range(n) for event in launch(100 + i, 500 + 10 * i, name=f"k{i}{'x' * LONG}"))


def long_shapes(n: int) -> Iterator[Event]:
    for i in range(n):
        yield host("aten::mm", 500 + i, 0.5, **{"Input Dims": [[i, *range(1000)]], "Input type": ["float"]})


def one_long_name(n: int) -> Iterator[Event]:
    yield host("x" * n, 500, 1)


def many_devices(steps: int) -> Callable[[int], Iterator[Event]]:
    """`n` kernels, each step's on as many GPUs."""

    def make(n: int) -> Iterator[Event]:
        a_step = n // steps
        for s in range(steps):
            begin = 1000 + s * 10 * a_step
            yield step(s, begin, 10 * a_step - 2)
            for i in range(a_step):
                yield from launch(100 + s * a_step + i, begin + 10 * i, device=i)

    return make


def many_steps(n: int) -> Iterator[Event]:
    for s in range(n):
        yield step(s, 1000 + 20 * s, 19)
        yield from launch(100 + s, 1002 + 20 * s)


def launches(n: int, **vary: Callable[[int], Any]) -> Iterator[Event]:
    for i in range(n):
        yield from launch(100 + i, 500 + 10 * i, **{name: value(i) for name, value in vary.items()})


def waits(n: int) -> Iterator[Event]:
    for i in range(n):
        yield from launch(100 + i, 500 + 30 * i)
        yield host("aten::item", 500 + 30 * i, 25)
        yield host("cudaStreamSynchronize", 505 + 30 * i, 18, "cuda_runtime")


def on_threads(n: int) -> Iterator[Event]:
    return (host("aten::add", 500 + i, 5, tid=1000 + i) for i in range(n))


def launching_threads(n: int) -> Iterator[Event]:
    for i in range(n):
        for event in launch(100 + i, 500 + 10 * i):
            yield event if event["cat"] == "kernel" else {**event, "tid": 1000 + i}


def on_processes(n: int) -> Iterator[Event]:
    for i in range(n):
        yield {**host("aten::add", 500 + i, 5), "pid": 1000 + i}
        yield {**host("cudaFree", 500 + i, 5, "cuda_runtime", correlation=10_000 + i), "pid": 1000 + i}


def nested(n: int) -> Iterator[Event]:
    return (host("aten::add", 500 + i, 2 * (n - i)) for i in range(n))


def stacks(n: int) -> Iterator[Event]:
    for i in range(n // LAYERS):
        for depth in range(LAYERS):
            yield host(f"train.py({depth}): f{depth}", 500 + 200 * i + depth, 2 * (LAYERS - depth), "python_function")
        yield from launch(100 + i, 500 + 200 * i + LAYERS)


def crossing(n: int) -> Iterator[Event]:
    return (host("aten::add", 500 + i, n) for i in range(n))


def begins_and_ends(n: int) -> Iterator[Event]:
    for i in range(n):
        yield {"ph": "B", "name": f"r{i % 7}", "pid": PID, "tid": PID, "ts": 500 + i}
    for i in reversed(range(n)):
        yield {"ph": "E", "name": f"r{i % 7}", "pid": PID, "tid": PID, "ts": 500 + 2 * n - i}


def asynchronous(n: int) -> Iterator[Event]:
    return ({"ph": "b", "cat": "a", "id": i, "name": "r", "pid": PID, "tid": PID, "ts": 500 + i} for i in range(n))


def flows(n: int) -> Iterator[Event]:
    for i in range(n):
        yield {"ph": "s" if i % 2 else "f", "cat": "ac2g", "id": i // 2, "name": "ac2g", "pid": PID, "tid": 1, "ts": 9}


def at_one_time(n: int) -> Iterator[Event]:
    for i in range(n):
        yield from launch(100 + i, 500)
        yield host("aten::add", 500, 1)


def overlapping(n: int) -> Iterator[Event]:
    for i in range(n):
        call, kernel = launch(100 + i, 500 + 10 * i)
        yield call
        yield {**kernel, "dur": 10 * n}


def one_graph(n: int) -> Iterator[Event]:
    yield host("cudaGraphLaunch", 500, 3, "cuda_runtime", correlation=100)
    for i in range(n):
        yield {**launch(100, 505 + 5 * i, name=f"k{i % 9}", **{"graph id": 3, "graph node id": i})[1]}


def counters(n: int) -> Iterator[Event]:
    for i in range(n):
        yield {"ph": "C", "name": f"c{i}", "pid": PID, "tid": 0, "ts": 500 + i, "args": {"value": i}}


def memory_events(n: int) -> Iterator[Event]:
    for i in range(n):
        args = {"Addr": 512 * i, "Bytes": 512, "Total Allocated": 512 * i, "Total Reserved": 512 * n}
        args |= {"Device Id": 0, "Device Type": 1}
        yield {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": PID,
            "tid": 1,
            "ts": 500 + i,
            "s": "t",
            "args": args,
        }


def thread_names(n: int) -> Iterator[Event]:
    return ({"ph": "M", "name": "thread_name", "pid": PID, "tid": i, "args": {"name": f"t{i}"}} for i in range(n))


def many_arguments(n: int) -> Iterator[Event]:
    yield host("aten::add", 500, 1, **{f"key {i}": [] for i in range(n)})


def groups(n: int) -> Iterator[Event]:
    """`n` collectives, each in a group of its own."""
    for i in range(n):
        about = {"Collective name": "allreduce", "Process Group Name": f"g{i}", "Group size": 2, "dtype": "Float"}
        about |= {"In msg nelems": 1000, "Out msg nelems": 1000, "Process Group Ranks": f"[{i}, {i + 1}]"}
        yield from launch(100 + i, 500 + 10 * i, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL", **about)


def unlike_names(n: int) -> Iterator[Event]:
    return (host(f"op{i}_of<{i}>::call({i * i})", 500 + i, 0.5) for i in range(n))


def members(path: Path, n: int) -> None:
    """A tar archive of `n` small files, one of which is a trace."""
    with tarfile.open(path, "w") as archive:
        for i in range(n):
            _add(archive, f"log{i}.txt", b"nothing")
        _add(archive, "trace.json", json.dumps({"traceEvents": few_launches()}).encode())


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def files(path: Path, n: int) -> None:
    """A folder of `n` small files, one of which is a trace."""
    path.mkdir()
    for i in range(n):
        (path / f"log{i}.txt").write_text("nothing")
    (path / "trace.json").write_text(json.dumps({"traceEvents": few_launches()}))


def ranks(path: Path, n: int) -> None:
    """A job of `n` ranks with ten steps and a collective in each."""
    path.mkdir()
    for rank in range(n):
        made: list[Event] = []
        for s in range(10):
            begin = 1000 + 1000 * s
            about = {"Collective name": "allreduce", "Process Group Name": "0", "Group size": n, "dtype": "Float"}
            about |= {
                "In msg nelems": 1000,
                "Out msg nelems": 1000,
                "Process Group Ranks": json.dumps([*range(min(n, 30))]),
            }
            made += [step(s, begin, 990), *launch(10 * s + 1, begin + 10)]
            made += launch(10 * s + 2, begin + 50 + rank % 9, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL", **about)
        about_all = {"rank": rank, "world_size": n, "backend": "nccl"}
        with gzip.open(path / f"rank{rank}.json.gz", "wt", compresslevel=1) as file:
            file.write(json.dumps({"distributedInfo": about_all, "traceEvents": made}))


DIMENSIONS = {
    "launches": Dimension(events(launches), 160_000),
    "steps": Dimension(events(many_steps), 40_000),
    "waits": Dimension(events(waits), 60_000),
    "long operators": Dimension(events(long_names("cpu_op")), 16_000),
    "long annotations": Dimension(events(long_names("user_annotation")), 16_000),
    "long calls": Dimension(events(long_names("cuda_runtime")), 16_000),
    "long frames": Dimension(events(long_names("python_function")), 16_000),
    "long tracks": Dimension(events(long_names("something")), 16_000),
    "long kernels": Dimension(events(long_kernels), 16_000),
    "long shapes": Dimension(events(long_shapes), 16_000),
    "one long name": Dimension(events(one_long_name), 12_000_000),
    "names": Dimension(events(unlike_names), 160_000),
    "GPUs": Dimension(events(many_devices(1)), 2_000),
    "GPUs of 10 steps": Dimension(events(many_devices(10)), 16_000),
    "streams": Dimension(events(lambda n: launches(n, stream=lambda i: i)), 40_000),
    "threads": Dimension(events(on_threads), 40_000),
    "launching threads": Dimension(events(launching_threads), 20_000),
    "processes": Dimension(events(on_processes), 20_000),
    "counters": Dimension(events(counters), 80_000),
    "memory events": Dimension(events(memory_events), 160_000),
    "thread names": Dimension(events(thread_names), 200_000),
    "nested ranges": Dimension(events(nested), 80_000),
    "deep stacks": Dimension(events(stacks), 160_000),
    "crossing ranges": Dimension(events(crossing), 80_000),
    "begins and ends": Dimension(events(begins_and_ends), 100_000),
    "open ranges": Dimension(events(asynchronous), 100_000),
    "flows": Dimension(events(flows), 200_000),
    "one time": Dimension(events(at_one_time), 60_000),
    "one correlation id": Dimension(events(lambda n: launches(n, correlation=lambda i: 5)), 40_000),
    "overlapping kernels": Dimension(events(overlapping), 40_000),
    "one graph": Dimension(events(one_graph), 100_000),
    "groups": Dimension(events(groups), 20_000),
    "arguments": Dimension(events(many_arguments), 800_000),
    "empty lists": Dimension(around(lambda n: "[" + "[]," * n + "[]]"), 8_000_000),
    "empty keys": Dimension(around(lambda n: "{" + ",".join(f'"{i}":1' for i in range(n)) + "}"), 2_000_000),
    "members": Dimension(members, 40_000),
    "files": Dimension(files, 20_000),
    "ranks": Dimension(ranks, 256),
}
