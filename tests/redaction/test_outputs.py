"""Everything that is published, unpacked: nothing in it tells of somebody, and what differed still differs."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sqlite3
from pathlib import Path

import pytest

from tests.cli.test_cli import run
from tests.redaction.forms import ADDRESSES, MARK, TELLING
from tests.support.kineto import KinetoTrace

FORMS = (*TELLING, *(text.replace("10.17", "10.77") for text in ADDRESSES))
HOST = "zq-s3cr3t-17"
NSYS = Path(__file__).parent.parent / "fixtures" / "nsys"


def unpacked(content: bytes) -> str:
    """The content and all that is packed in it."""
    text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode()
    packed = re.findall(r"H4sI[A-Za-z0-9+/]{16,}={0,2}", text)
    return "\n".join([text, *(gzip.decompress(base64.b64decode(block)).decode("utf-8", "replace") for block in packed)])


def told(content: bytes) -> list[str]:
    text = unpacked(content)
    return [text[max(at.start() - 60, 0) : at.end() + 30] for at in re.finditer(f"(?i){MARK}|10[.]77[.]|7300000", text)]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Every form in every place from which texts are read, where findings name it, in a file and folders that are called after
    somebody."""
    made = KinetoTrace()
    made.metadata["deviceProperties"][0]["name"] = "GPU of USER=s3cr3t"
    made.metadata |= {
        "traceName": "/home/s3cr3t/t.json",
        "env": {"USER": MARK},
        "PYTORCH_VERSION": "2.4 by s3cr3t@example.com",
    }
    made.metadata["distributedInfo"] = {"backend": "nccl", "rank": 0, "world_size": 2, "pg_config": "HOST=s3cr3t"}
    for number, form in enumerate(FORMS):
        t = number * 1000
        made.range(f"{form}", t + 100, t + 995, category="user_annotation")
        made.range(f"train.py({number}): {form}", t + 101, t + 994, category="python_function")
        made.range(f"/home/s3cr3t/proj/f{number}.py({number}): step", t + 102, t + 993, category="python_function")
        made.range(f"op {form}", t + 103, t + 992, category="cpu_op")
        made.op(t + 1000, t + 1090, launch=(t + 990, t + 995), name=f"kernel {form}")
        made.add(ph="C", name=f"counter {form}", pid=0, ts=t, args={"value": number})
    made.add(ph="M", name="process_name", args={"name": "python --user s3cr3t"})
    made.add(ph="M", name="thread_name", args={"name": "USER=s3cr3t"})
    made.add(ph="M", name="process_labels", args={"labels": "HOST=s3cr3t"})
    folder = tmp_path / "home" / "zq.s3cr3t" / "runs"
    folder.mkdir(parents=True)
    return made.write(folder / f"{HOST}_100.1700000000000.pt.trace.json")


def test_no_output_tells_of_anybody(capsysbinary, tmp_path, trace):
    forms = ("markdown", "sarif", "junit", "github", "csv", "prometheus")
    also = [f"--also={form}={tmp_path / form}" for form in forms]
    assert run(capsysbinary, "report", trace, "-o", tmp_path / "report.html", *also)[0] == 0
    assert run(capsysbinary, "export", trace, "-o", tmp_path / "export.json.gz")[0] == 0
    run(capsysbinary, "baseline", "save", trace, "--anyway", "-o", tmp_path / "baseline.json.gz")
    run(capsysbinary, "compare", trace, trace, "-f", "html", "-o", tmp_path / "compare.html")
    run(capsysbinary, "compare", trace, trace, "-f", "markdown", "-o", tmp_path / "compare.md")
    for form in ("markdown", "junit", "github"):
        run(
            capsysbinary,
            "check",
            trace,
            "--assert",
            "idle_share <= 0.1%",
            "--assert",
            "INP001",
            "-f",
            form,
            "-o",
            tmp_path / f"check.{form}",
        )
    written = [path for path in tmp_path.iterdir() if path.is_file()]
    assert len(written) == len(forms) + 8
    assert {path.name: found[:3] for path in written if (found := told(path.read_bytes()))} == {}


def test_names_that_differ_still_differ(capsysbinary, tmp_path, trace):
    def names(*flags: str) -> list[set[str]]:
        run(capsysbinary, "export", trace, "-o", tmp_path / "e.json", *flags)
        events = json.loads((tmp_path / "e.json").read_bytes())["traceEvents"]
        found: dict[str, set[str]] = {}
        for event in events:
            if event["ph"] == "X" and not event["cat"].startswith("traceanalyzer"):
                found.setdefault(event["cat"], set()).add(event["name"])
        return [found[category] for category in sorted(found)]

    assert [len(one) for one in names()] == [len(one) for one in names("--no-redact")]


def test_the_same_trace_gives_the_same_bytes(capsysbinary, tmp_path, trace):
    for name in ("a.html", "b.html"):
        run(capsysbinary, "report", trace, "-o", tmp_path / name)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_an_export_of_nsight_systems_tells_of_nobody(capsysbinary, tmp_path):
    source = next(NSYS.glob("*.sqlite"))
    path = tmp_path / "run.sqlite"
    path.write_bytes(source.read_bytes())
    with sqlite3.connect(path) as database:
        ids = [row[0] for row in database.execute("select id from StringIds")]
        for number, key in enumerate(ids):
            form = FORMS[number % len(FORMS)]
            database.execute("update StringIds set value = value || ' ' || ? where id = ?", (form, key))
        database.execute(
            "update TARGET_INFO_SYSTEM_ENV set value = ? where lower(name) = 'hostname'", (f"{HOST}.corp",)
        )
    database.close()
    for name, command in {"r.html": "report", "e.json": "export"}.items():
        code, _, err = run(capsysbinary, command, path, "-o", tmp_path / name)
        assert code == 0, err
        assert told((tmp_path / name).read_bytes()) == []
