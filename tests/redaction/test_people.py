"""Hosts and users that only the trace tells, the names of inputs, and names that stay apart."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.support.job_results import job_result
from traceanalyzer.model.schema import NAME
from traceanalyzer.redaction.data import redact_result, redaction_of
from traceanalyzer.redaction.people import People, file_name

TIME = "1700000000000.pt.trace.json"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("run on node17.corp.example", "run on host"),
        ("node17: step", "host: step"),
        ("NODE17_rank0", "host_rank0"),
        ("node170 node17x xnode17", "node170 node17x xnode17"),
    ],
)
def test_a_host_is_known_by_its_short_name_too_and_only_as_a_word(text, shown):
    assert People(["node17.corp.example"]).without(text) == shown


@pytest.mark.parametrize(
    ("user", "text"),
    [
        ("ΣΑΣ", "σας σασ ΣΑΣ"),
        ("İlker", "İlker ilker"),
        ("ilker", "İLKER ılker"),
        ("gpus", "GPU\u017f gpuſ"),
        ("Jürgen", "JÜRGEN"),
    ],
)
def test_letters_that_differ_in_case_are_those_of_one_name(user, text):
    assert set(People(places=[f"/home/{user}/run.json"]).without(text).split()) == {"user"}


def test_several_hosts_stay_apart():
    people = People(["node17.a.example", "node18", "node17.b.example", "node18.a.example"])
    shown = [people.without(host) for host in ("node17.a.example", "node17.b.example", "node18", "node18.a.example")]
    assert len(set(shown)) == 3 and shown[2] == shown[3]
    assert all(one in ("host1", "host2", "host3") for one in shown)


@pytest.mark.parametrize("host", ["gpu", "localhost", "alpha", "10.0.0.1", "a1"])
def test_a_plain_word_is_no_host(host):
    assert People([host]).without(f"{host} kernel") == f"{host} kernel"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (f"worker6_step_12.{TIME}", f"worker6_step_12.{TIME}"),
        (f"worker6_12.{TIME}", f"worker6_12.{TIME}"),
        (f"rank_0.{TIME}.gz", f"rank_0.{TIME}.gz"),
        (f"gpu17_1234.{TIME}", f"host_1234.{TIME}"),
        (f"laptop_1234.{TIME}", f"host_1234.{TIME}"),
        (f"ip-10-0-0-1.ec2.internal_99.{TIME}", f"host_99.{TIME}"),
        ("/home/zqalice/zqalice-run.json", "user-run.json"),
        ("/home/train/train_run.json", "train_run.json"),
        ("https://host/a/run.json?sig=abc", "run.json"),
        ("C:\\Users\\zqalice\\zqalice.json", "user.json"),
    ],
)
def test_what_an_input_is_called(name, shown):
    assert file_name(name) == shown


def test_a_file_is_called_after_a_host_if_the_number_is_its_process():
    named = f"worker6_12.{TIME}"
    assert People(places=[named], pids=[12]).file_name(named) == f"host_12.{TIME}"


def test_files_of_several_hosts_and_folders_stay_apart():
    job = job_result(4)
    paths = [f"a/node1_7.{TIME}", f"a/node2_7.{TIME}", "a/r/t.json", "b/r/t.json"]
    inputs = [replace(one, path=path) for one, path in zip(job.inputs, paths, strict=True)]
    first = replace(job.findings[0], message=f"rank 3 in b/r/t.json waits for {paths[0]}")
    clean, _ = redact_result(replace(job, inputs=inputs, findings=[first, *job.findings[1:]]), None)
    assert [one.path for one in clean.inputs] == [f"host1_7.{TIME}", f"host2_7.{TIME}", "t.json", "t.json (2)"]
    assert clean.findings[0].message == f"rank 3 in t.json (2) waits for host1_7.{TIME}"


def test_versions_are_no_addresses():
    job = job_result(1)
    versions = {"curand": "10.3.5.147", "torch": "2.4 by zq@example.org"}
    clean, _ = redact_result(replace(job, inputs=[replace(job.inputs[0], versions=versions)]), None)
    assert clean.inputs[0].versions == {"curand": "10.3.5.147", "torch": "2.4 by user@host"}


class Tables(dict):
    def table(self, name):
        return self[name]


def test_names_that_differ_go_on_differing_and_are_one_in_all_tables():
    secrets = [f"login token=zq{at}abcdef" for at in range(3)]
    names = [*secrets, "login token=…", "login token=… (2)", None, "plain"]
    tables = Tables(
        gpu_ops=pa.table({"name": pa.array(names).cast(NAME)}), threads=pa.table({"name": pa.array(secrets[::-1])})
    )
    seen = redaction_of(tables).tables(tables)
    shown = seen.table("gpu_ops")["name"].to_pylist()
    assert len(set(shown)) == len(names) and shown[3:] == names[3:] and not any("zq" in (name or "") for name in shown)
    assert seen.table("gpu_ops")["name"].type == NAME
    assert seen.table("threads")["name"].to_pylist() == shown[2::-1]
