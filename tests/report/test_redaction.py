"""What is taken out of a file that is passed around, and what must stay as it is."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_sample import sample

from traceanalyzer.model.schema import NAME
from traceanalyzer.redaction.data import redact_result
from traceanalyzer.redaction.people import file_name
from traceanalyzer.redaction.texts import PASSES, redacted_text

PATHS = {
    "/home/alice/proj/train.py(41): step": "proj/train.py(41): step",
    "/home/alice/train.py": "train.py",
    "/home/alice smith/proj/train.py": "proj/train.py",
    "called from '/Users/alice/a/b/c.py', twice": "called from 'b/c.py', twice",
    "../../home/alice/p/x.py": "p/x.py",
    "/mnt/nfs/home/alice/train.py": "train.py",
    "/lustre/fsw/alice/proj/train.py": "proj/train.py",
    "/scratch/alice/train.py": "train.py",
    "/nobody-lab/alice/p/train.py(3): x": "p/train.py(3): x",
    "/workspace/proj/train.py": "proj/train.py",
    "/tmp/torchinductor_alice/xx/cxyz.py(3): call": "cxyz.py(3): call",
    "torchinductor_alice": "torchinductor",
    "/home/alice/venv/bin/python -m x --data=/home/alice/d": "bin/python -m x --data=d",
    "/opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py(1): _call_impl": "torch/nn/modules/module.py(1): _call_impl",
    "/usr/lib/python3/dist-packages/yaml/reader.py": "yaml/reader.py",
    "/usr/lib/python3.11/threading.py(3): run": "threading.py(3): run",
    "C:\\Users\\Alice Smith\\proj\\train.py(3): f": "proj\\train.py(3): f",
    "D:/runs/alice/x/y.py": "x\\y.py",
    "\\\\server\\share\\team\\x\\train.py": "x\\train.py",
    "file:///home/alice/p/q/train.py": "q/train.py",
    "file://node7/home/alice/p/q/train.py": "q/train.py",
    "https://alice:pw@host.corp:80/a/b/c?token=xyz#f": "https://…/b/c",
    "s3://bucket/run/rank0.json": "s3://…/run/rank0.json",
    "run by alice@node17": "run by user@host",
    "a.b@example.org": "user@host",
    "login?token=abcdefgh123": "login?token=…",
    "hf_abcdefghijklmnopqrstuv": "…",
}
KEPT = (
    *("fwd/layer1/attn", "/encoder/layer.0/attention/MatMul", "/model/layers.0/x.weight", "N/A", "GB/s", "5 GB/s, 3 ms/step", "a//b"),
    *("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, float)",),
    *("operator/(a, b)", "~Foo()", "memcpy@GLIBC_2.14", "cudaLaunchKernel@plt", "?foo@ns@@YAXH@Z", "decode@4096", "token=128"),
    *(r"(?:\w+)/\d+ d:\d+\w", r"^/?a\\b$", "torch/_dynamo/eval_frame.py(1): x", "train.py:41 (step)", "<frozen importlib>(241)"),
    *("Memcpy HtoD (Pageable -> Device)", "ProfilerStep#3", "nccl:all_reduce/group 0", "C: done", "and/or", "80% of 1/2", "x = y"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "shown"), PATHS.items())
def test_what_tells_of_someone_is_gone(text, shown):
    assert redacted_text(text) == shown
    assert redacted_text(shown) == shown
    assert any(re.search(one.hint, text) for one in PASSES)  # what this does not match is never looked at


@pytest.mark.parametrize("text", KEPT)
def test_names_that_are_no_paths_stay(text):
    assert redacted_text(text) == text


WORDS = st.from_regex(r"[A-Za-z_][\w.]{0,8}", fullmatch=True)


@given(st.lists(WORDS, min_size=1, max_size=6), st.sampled_from(["/", "::", "<", ", ", " -> "]))
def test_ranges_and_names_of_code_stay(parts, between):
    text = between.join(parts)
    assert redacted_text(text) == text or "torchinductor_" in text


@given(
    st.from_regex(r"zq[a-z]{4,8}", fullmatch=True),
    st.sampled_from(["/home/{}/", "/Users/{}/", "/scratch/{}/", "/mnt/home/{}/", "/mnt/users/{}/", "C:\\Users\\{}\\", "file:///home/{}/"]),
    st.lists(st.from_regex(r"[a-y]{1,8}", fullmatch=True), max_size=4),
    st.text(st.characters(categories=["Ll", "Zs"]), max_size=8),
)  # fmt: skip
def test_a_user_is_in_no_path(user, home, folders, before):
    home = home.format(user)
    path = home + ("\\" if "\\" in home else "/").join([*folders, "train.py"])
    text = redacted_text(f"{before} {path}(3): step")
    assert user not in text and "train.py(3): step" in text


@given(st.text(max_size=60))
def test_any_text_can_be_redacted_twice(text):
    once = redacted_text(text)
    assert redacted_text(once) == once


def test_input_names():
    assert file_name("/data/alice/run.json.gz") == "run.json.gz"
    assert file_name("C:\\a\\run.json") == "run.json"
    assert file_name("/x/node17.corp_4242.1699000000000.pt.trace.json.gz") == "host_4242.1699000000000.pt.trace.json.gz"
    assert file_name("rank0.1699000000000.pt.trace.json") == "rank0.1699000000000.pt.trace.json"


class Tables(dict):
    def table(self, name):
        return self[name]


def test_tables_and_result():
    result, _ = sample()
    names = pa.array(["/home/a/p/t.py(1): f", None, "/home/b/p/t.py(1): f", "kernel<a/b>"]).cast(NAME)
    processes = pa.table({"host": ["node-17", None], "name": ["python on node-17", "gpu"]})
    tables = Tables(host_ranges=pa.table({"name": names, "start_ns": [1, 2, 3, 4]}), processes=processes)
    first = replace(result.findings[0], message="in /home/alice/proj/x.py on node-17")
    changed = replace(result, findings=[first, *result.findings[1:]])
    clean, seen = redact_result(changed, tables)
    assert seen is not None
    ranges = seen.table("host_ranges")
    assert ranges["name"].to_pylist() == ["p/t.py(1): f", None, "p/t.py(1): f (2)", "kernel<a/b>"]
    assert ranges["name"].type == NAME and len(set(ranges["name"].combine_chunks().indices.to_pylist())) == 4
    assert ranges["start_ns"].to_pylist() == [1, 2, 3, 4]
    assert seen.table("processes").to_pydict() == {"host": [None, None], "name": ["python on host", "gpu"]}
    assert clean.findings[0].message == "in proj/x.py on host"
    assert clean.findings[0].metrics == result.findings[0].metrics
    assert clean.findings[0].recommend == result.findings[0].recommend
    assert [one.path for one in clean.inputs] == ["resnet50.pt.trace.json.gz"]
    with pytest.raises(KeyError):
        seen.table("gpu_ops")
