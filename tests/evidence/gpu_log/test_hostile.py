"""Bad logs of GPUs: one line that says what is wrong, whatever is cut, mixed or made up."""

from __future__ import annotations

import json
import random

import pytest

from tests.evidence.gpu_log import logs
from tests.evidence.gpu_log.logs import ALL, LOGS, START_S, read, write
from traceanalyzer.errors import InputError
from traceanalyzer.evidence.gpu_log import KIND
from traceanalyzer.ingest.bytes.source import source_of

BAD = {
    "no header": ("without a header", "\n".join(logs.smi(logs.rows(20)).split("\n")[1:])),
    "no times": ("add timestamp to --query-gpu", logs.smi(logs.rows(20), ALL[1:])),
    "a header alone": ("without a sample", logs.smi([])),
    "dates that there are not": ("without a sample", logs.smi(logs.rows(20)).replace("2026/11/28", "2026/13/45")),
    "an answer that is cut": (
        "cut or damaged",
        '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"DCGM_FI_DEV_SM_CLOCK"},"values":[[1,',
    ),
    "a list that is cut": (
        "cut or damaged",
        json.dumps([{"timestamp": START_S, "gpu_util": 5, "sm_clock": 3}] * 3)[:-20],
    ),
    "JSON without times": ("have no times", '{"gpu_util": 5, "sm_clock_mhz": 1500}\n'),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path, what):
    words, text = BAD[what]
    with pytest.raises(InputError) as caught:
        read(write(tmp_path, "log", text))
    assert words in str(caught.value) and "\n" not in str(caught.value) and str(tmp_path / "log") in str(caught.value)


OTHERS = {
    "a table": "name,count,total\nk,1,2\n",
    "rows of numbers": "1,2,3\n4,5,6\n",
    "processes": "pid, process_name, used_gpu_memory [MiB]\n1, python, 4 MiB\n",
    "nvidia-smi": "Sat Nov 28\n+----+\n| NVIDIA-SMI 590.48 |\n",
    "metrics of others": "# HELP http_requests_total It\n# TYPE http_requests_total counter\nhttp_requests_total 4\n",
    "a range of others": '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up"},"values":[]}]}}',
    "a log of a CPU": '{"timestamp": 1, "cpu_util": 3, "memory_used": 4, "power": 5}\n',
    "a trace": '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "ts": 1, "name": "gpu_util"}]}\n',
    "a result of a training": '{"step": 1, "loss": 0.3, "time": 4, "lr": 1e-4}\n',
    "prose": "The GPU, as it were, has a power of 300 W and a clock.\n",
    "kernels": "ID,Kernel Name,clock\n1,k,2\n",
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_files_are_not_taken_for_one(tmp_path, what):
    path = write(tmp_path, "file", OTHERS[what])
    assert not KIND.sniff(source_of(path, path, None))


@pytest.mark.parametrize("name", sorted(path.name for path in LOGS.iterdir() if "trace" not in path.name))
def test_whatever_is_cut_or_mixed_ends_well(tmp_path, name):
    whole = (LOGS / name).read_bytes()[:6_000]
    chance = random.Random(name)
    for turn in range(60):
        data = bytearray(whole[: chance.randrange(len(whole))] if turn % 3 == 0 else whole)
        for _ in range(chance.randrange(4)):
            at = chance.randrange(len(data) or 1)
            data[at : at + chance.randrange(30)] = chance.choice(
                (b"\0", b"\n", b",", b"nan", b"\xff\xfe", b'"', b"[", b"{}", b"-1e999", b" %")
            )
        path = tmp_path / "log"
        path.write_bytes(data or b" ")
        source = source_of(path, path, None)
        if KIND.sniff(source):
            try:
                sink, _ = read(path)
            except InputError as error:
                assert "\n" not in str(error)
            else:
                assert all(row["time_ns"] is not None for row in sink.rows())


def test_impossible_values_are_none(tmp_path):
    made = logs.rows(30, util=940, power=-5.0, temp=float("inf"))
    found = read(write(tmp_path, "a.csv", logs.smi(made)))[0].rows()
    busy = [row for row in found if row["sm_clock"] == 1_900]
    assert busy and {(row["utilization"], row["power"], row["temperature"]) for row in busy} == {(None, None, None)}
