"""Inputs to begin with, made here from small programs; what fuzzing found lies in `found/`."""

from __future__ import annotations

import gzip
import json
import pickle
import tempfile
from functools import cache
from pathlib import Path

import traceanalyzer as ta
from tests.evidence import memory_snapshots as made
from tests.evidence.cpu_profile import makers as profiles
from tests.evidence.deepspeed_log import logs as deepspeed_logs
from tests.evidence.gpu_log import logs
from tests.evidence.kernel_counters import pages
from tests.evidence.nccl_records import made as records
from tests.evidence.operator_tables import made as tables
from tests.nsys import nsys_export as export
from tests.support.chrome import AROUND, every_kind, random_run
from traceanalyzer.engine.rules.library import rule_files
from traceanalyzer.ingest.storing import ingest_to_store

FOUND = Path(__file__).parent / "found"

KINETO_WORDS = """
    traceEvents schemaVersion deviceProperties distributedInfo baseTimeNanoseconds ph cat name pid tid ts dur args id X B E b e C i
    M s f kernel gpu_memcpy gpu_memset cuda_runtime cpu_op user_annotation gpu_user_annotation overhead python_function device stream
    correlation bytes grid block process_name thread_name process_labels labels [memory] 1e999 -1 NaN 9223372036854775808 \\ud800 },{ ]}
"""
STORE_WORDS = "schema_version inputs parts tables rows sha256 null -1 PAR1 ARROW1"
SNAPSHOT_WORDS = "segments device_traces blocks frames address size requested_size state time_us action alloc free_completed oom NaN -1"
DEEPSPEED_WORDS = """
    time (ms) | fwd: fwd_microstep: bwd: step: [Rank 0] [INFO] [logging.py:96:log_dist] -------------------------- DeepSpeed Flops
    Profiler -------------------------- Profile Summary at step 1: Detailed Profile per GPU Params, MACs, latency, FLOPS Gs TFLOPS
    Comm. Op Message Size Count Total Latency(ms) Total straggler(ms) KB MB all_reduce comm op: SamplesPerSec= zero_optimization_stage
"""
COUNTERS_WORDS = """
    "ID" "Process ID" "Kernel Name" "Metric Name" "Metric Unit" "Metric Value" "Average" Context Stream Section: OPT Speedup: % Ghz
    Duration "Memory Throughput" sm__throughput launch__grid_size 1,234.5 1.234,5 nan 1e999 -1 (64, 1, 1) <unnamed>:: ==PROF== ==ERROR==
"""
LOG_WORDS = """
    timestamp, index, utilization.gpu [%] clocks.sm [MHz] power.draw [W] clocks_event_reasons.active [N/A] [Not Supported] 0x4 MiB
    2026/11/28 16:47:17.856 # gpu pwr sm DCGM_FI_DEV_GPU_UTIL {gpu="0"} NaN +Inf "values" "metric" "gpu_util" 1,5 -1 1e999
"""
RECORD_WORDS = """
    entries pg_config pg_status process_group collective_seq_id seq_id p2p_seq_id profiling_name nccl:all_reduce nccl:send 0->1 1<-0
    state completed scheduled frames input_sizes time_created_ns ranks [0,1] coll_perf p2p_perf header metadata
    dump_stats v4.3 -1 NaN 1e999
"""
TABLE_WORDS = (
    "Name Self CPU CUDA XPU total % Mem # of Calls Input Shapes Total FLOPs us ms s -- ... schema nodes attrs rf_id nan"
)
PROFILE_WORDS = """
    profiles samples weights events frames shared unit seconds none sampled evented O C at "cat":"py-spy" "cat":"FEE" ph B E X ts dur
    thread (7): MainThread;<module> (a.py:1) P7;T0:7;a.py:f:1 MOJ cpu-clock:pppH: cycles: [unknown] NaN -1 1e999 9223372036854775807 ;;
"""
RULE_WORDS = """
    id: slug: title: status: category: after: why: requires: params: from: where: group_by: metrics: having: scope: order_by: limit:
    severity: claims: saving: message: recommend: tests: false_positives: gaps gpu_ops sum(duration) count() concat & * << !! {} [] | >
"""
BUDGET_WORDS = "budgets: rules: baseline: window idle < % ms [tool.traceanalyzer.check] and ( &a *a"


def found(target: str) -> dict[str, bytes]:
    """What once failed."""
    return {path.name: path.read_bytes() for path in sorted((FOUND / target).glob("*")) if path.is_file()}


def kineto() -> dict[str, bytes]:
    run = json.loads(random_run(1).text())
    events = run["traceEvents"][:40]
    lines = "\n".join(json.dumps(event) for event in events[:8])
    return {
        "run": json.dumps({**run, "traceEvents": events}).encode(),
        "kinds": json.dumps({**AROUND, "traceEvents": every_kind()[:24]}).encode(),
        "list": json.dumps(events[:6], indent=1).encode(),
        "lines": lines.encode(),
        "broken": json.dumps({"traceEvents": events[:5]}).replace("aten::mm", 'a "b" \\x').encode()[:-20],
    }


def nsys() -> dict[str, bytes]:
    api, gpu = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_"
    tables = {
        "launches": {api: [export.runtime(500 + n, 600 + n, correlation=n) for n in range(1, 4)],
                     gpu + "KERNEL": [export.kernel(700 + 50 * n, 720 + 50 * n) for n in range(1, 4)]},
        "copies": {gpu + "MEMCPY": [export.memcpy(10, 20)], "NVTX_EVENTS": [export.nvtx(1, 90, "step")]},
    }  # fmt: skip
    thread, owner = {"globalTid": export.global_id(7, 8)}, {"globalPid": export.global_id(7)}
    frame = {"module": 2, "unresolved": 0, "specialEntry": 0}
    tables["host"] = tables["launches"] | {
        "COMPOSITE_EVENTS": [{"id": n, "start": 400 + 30 * n, "cpu": 0} | thread for n in range(1, 7)],
        "SAMPLING_CALLCHAINS": [
            {"id": n, "symbol": 3 - depth, "stackDepth": depth} | frame for n in range(1, 7) for depth in (0, 1)
        ],
        "SCHED_EVENTS": [{"start": 300 + 90 * n, "cpu": 0, "isSchedIn": n % 2} | thread for n in range(1, 6)],
        "OSRT_API": [{"start": 310, "end": 390, "nameId": 3, "callchainId": 0} | thread],
        "CUDA_UM_CPU_PAGE_FAULT_EVENTS": [{"start": 320, "end": 330, "address": 4096} | owner],
    }
    sent = {"textId": 3, "commHandle": 1, "remoteRank": 1, "tag": 5, "size": 64, "requestHandle": 2}
    tables["mpi"] = tables["launches"] | {
        "MPI_P2P_EVENTS": [{"start": 100, "end": 110} | sent | thread],
        "MPI_START_WAIT_EVENTS": [{"start": 120, "end": 450, "textId": 3, "requestHandle": 2} | thread],
        "MPI_RANKS": [{"rank": 0} | owner],
    }
    return {name: _database(content) for name, content in tables.items()}


def _database(tables: export.Tables) -> bytes:
    import sqlite3

    with tempfile.TemporaryDirectory() as folder:
        path = export.make_export(Path(folder) / "e", tables)
        connection = sqlite3.connect(path)
        connection.execute("pragma page_size = 512")
        connection.execute("vacuum")
        connection.close()
        return path.read_bytes()


def nccl_records() -> dict[str, bytes]:
    calls = [*records.rounds(2), records.entry(3, "send 0->1", state="started", is_p2p=True)]
    whole = records.dump(calls, {"0": (0, 1), "5": (0, 2)}, {"0": (3, -1, 2)})
    lines = [(1, 8192, 40), (2, 8192, 40)]
    return {
        "torch": records.pickled(whole),
        "python": pickle.dumps(whole, 4),
        "json": records.as_json(whole),
        "inspector 4.0": records.inspector("v4.0", lines, start=True),
        "inspector 4.3": records.inspector("v4.3", lines),
        "link": records.link_json([(8, 1.0, 2.0)]),
        "printed": records.LINK_TEXT,
    }


def memory_snapshot() -> dict[str, bytes]:
    trace = [
        made.entry("segment_alloc", 0, 4096, 4096),
        made.entry("alloc", 1, 4096, 500, frames=[made.frame(3), made.frame(4)]),
        made.entry("alloc", 2, 5120, 600, frames=[made.frame(5)]),
        made.entry("free_requested", 3, 5120, 600),
        made.entry("free_completed", 4, 5120, 600),
        made.entry("oom", 5, 0, 9999, device_free=7),
    ]
    blocks = [made.block(4096, 512, frames=[made.frame(3)]), made.block(4608, 3584, "inactive")]
    content = made.snapshot([made.segment(4096, blocks)], trace, allocator_settings={"max_split_size": -1})
    dumped = {f"protocol{protocol}": pickle.dumps(content, protocol) for protocol in (2, 4)}
    circle: list[object] = []
    circle.append(circle)
    return dumped | {
        "json": json.dumps(content).encode(),
        "code": pickle.dumps(made.snapshot([{"device": Path}])),  # type: ignore[dict-item]
        "circle": pickle.dumps(made.snapshot(circle, circle)),  # type: ignore[arg-type]
        "memo": b"\x80\x04}\x8c\x08segments]r\xff\xff\xff\x7fs.",
    }


def deepspeed_log() -> dict[str, bytes]:
    logger = "[2023-06-21 07:39:09,443] [INFO] [logging.py:96:log_dist] [Rank 0] rank=0 "
    summary = deepspeed_logs.comms([("all_reduce", [("4.0 B", 40, 50.0, 1.2, 30.0, 20.0)])], straggler=True)
    texts = {
        "timers": deepspeed_logs.many_timers(14, grows=2.0, prefix=logger, long=True),
        "profile": deepspeed_logs.profile(deepspeed_logs.mlp(blocks=1, sharded=True, root_seconds=1.8e9)),
        "old": deepspeed_logs.profile(deepspeed_logs.mlp(blocks=1), version=deepspeed_logs.FIRST, prefix="0: "),
        "comms": [*deepspeed_logs.many_timers(2), *summary],
    }
    return {name: "\n".join(lines).encode() for name, lines in texts.items()}


def kernel_counters() -> dict[str, bytes]:
    stall = "each warp of this workload spends 47.3 cycles being stalled waiting for a scoreboard dependency on a L1TEX operation."
    rules = [("CPIStall", "OPT", stall, "global", "94.3")]
    text = (pages.FIXTURES / "tail_wave.slow.details.txt.gz").read_bytes()
    return {
        "details": pages.details(rules=rules).encode(),
        "raw": pages.raw(pages.RAW_ONE).encode(),
        "text": gzip.decompress(text)[:4000],
        "log": b"==PROF== Connected to process 7\n==ERROR== ERR_NVGPUCTRPERM\n",
        "report": b"NVR\0" + bytes(20),
    }


def gpu_log() -> dict[str, bytes]:
    made = logs.rows(12, gpus=2)
    lines = [
        {"timestamp": row["time"], "gpu": row["gpu"], "gpu_util": row["util"], "sm_clock": row["sm"]} for row in made
    ]
    series = {"metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0"}, "values": [[logs.START_S, "9"]]}
    return {
        "smi": logs.smi(made).encode(),
        "comma": logs.smi(made, parted=";", comma=True).encode(),
        "dmon": logs.dmon(12).encode(),
        "bare": logs.dmon(12, options="").encode(),
        "dcgm": logs.dcgm(2).encode(),
        "jsonl": "".join(json.dumps(line) + "\n" for line in lines).encode(),
        "list": json.dumps(lines).encode(),
        "range": json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [series]}}).encode(),
    }


def operator_tables() -> dict[str, bytes]:
    nodes = [tables.product(4, 2, 3), tables.product(3, 1, name="aten::matmul")]
    shaped = [(*row, "[[8, 16], [16, 4]]", "1.5") for row in tables.ROWS]
    return {
        "plain": tables.table().encode(),
        "shapes": tables.table(shaped, (*tables.COLUMNS, "Input Shapes", "Total MFLOPs")).encode(),
        "log": (tables.table(prefix="[rank0]: ") + tables.table(tables.ROWS[:2], totals=())).encode(),
        "nodes": json.dumps(tables.execution(nodes)).encode(),
        "old": json.dumps(tables.execution(list(map(tables.old_node, nodes)), "1.0.1")).encode(),
    }


def cpu_profile() -> dict[str, bytes]:
    """A few samples in every form."""
    stacks = [profiles.WORK, (profiles.MAIN, profiles.LOAD, profiles.MODULE), (profiles.MAIN, profiles.STEP)]
    given = {
        "speedscope": profiles.speedscope(stacks),
        "evented": profiles.evented(stacks),
        "chrometrace": profiles.chrometrace(stacks),
        "viztracer": profiles.viztracer(base=10**18, overflow=True),
        "folded": profiles.folded(stacks),
        "austin": profiles.austin(stacks),
        "mojo": profiles.mojo(stacks),
        "perf": profiles.perf_script(stacks),
        "pprof": gzip.decompress(profiles.pprof(stacks, start=10**18)),
    }
    return {
        name: data if isinstance(data, bytes) else data.encode() if isinstance(data, str) else json.dumps(data).encode()
        for name, data in given.items()
    }


@cache
def small_trace() -> ta.Trace:
    with tempfile.TemporaryDirectory() as folder:
        return ta.load(random_run(1).write(Path(folder) / "trace.json"))


def write_store(place: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ingest_to_store([random_run(1).write(Path(folder) / "trace.json")], place, "fuzz")


def store() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "store"
        write_store(place)
        files = sorted(path for path in place.rglob("*") if path.is_file())
        return {path.name: bytes([number]) + path.read_bytes() for number, path in enumerate(files)}


def rules() -> dict[str, bytes]:
    """The shortest of the shipped rules, under ids of their own."""
    shipped = sorted(rule_files(), key=lambda file: len(file[1]))[:6]
    return {
        Path(name).stem: text.replace("id: ", "id: Z", 1).replace("after:", "# after:").encode()
        for name, text in shipped
    }


def budgets() -> dict[str, bytes]:
    yaml = (
        "ybudgets:\n  - compute >= 40%\n  - {assert: idle.input < 2 ms, level: warn}\nfail_on: high\nbaseline: b.json\n"
    )
    toml = 't[tool.traceanalyzer.check]\nbudgets = ["step.median <= 20 ms", "findings.high == 0"]\n'
    return {"yaml": yaml.encode(), "toml": toml.encode()}
