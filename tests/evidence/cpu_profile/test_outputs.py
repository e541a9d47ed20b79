"""What a CPU profile adds to the report, to comparisons and to `doctor`; and that no path of a machine leaves."""

from __future__ import annotations

import json
from typing import Any

import pytest

import traceanalyzer as ta
from tests.cli.test_cli import run
from tests.evidence.cpu_profile import makers as make
from traceanalyzer.evidence.cpu_profile.measuring import function_only
from traceanalyzer.evidence.cpu_profile.words import shown

ABOUT = {
    "unit": "ns",
    "stretches": False,
    "period": 10,
    "timed": True,
    "form": "speedscope",
    "producer": "py-spy",
    "lost": None,
}
THREAD = {
    "rank": 0, "thread": 0, "label": "the main thread", "weight": 1000, "startup": 0, "samples": 100, "own": 900, "leaf": "select",
    "leaf_weight": 400, "importer": None, "imported": None,
}  # fmt: skip
SAID = "Of the main thread's samples outside the import chain, 82% are in tokenize → merge (data.py:17)"
FUNCTION = {"path": "a → b (c.py:1)", "share": 0.5, "inside": None}


@pytest.mark.parametrize(
    "thread, functions, about, said",
    [
        ({}, [FUNCTION], {}, "Of the main thread's samples, 50% are in a → b (c.py:1)"),
        ({}, [FUNCTION | {"inside": "f"}], {"stretches": True}, "Of the main thread's time, 50% is in a → b (c.py:1), there in f"),
        ({"startup": 100}, [FUNCTION], {}, "Of the main thread's samples outside the import chain, 50% are in a → b (c.py:1)"),
        ({"startup": 1000}, [], {}, "All of the main thread's samples are start-up: imports, once and not in every step"),
        ({"startup": 850}, [], {}, "Only 15 samples lie outside the import chain: too few to say"),
        ({"own": 0}, [], {}, "Of the main thread's samples, none is in code of the user's own that can be named: "
         "40% are in select"),
        ({"own": 50}, [FUNCTION], {}, "Of the main thread's samples, only 5.0% are in code of the user's own: "
         "40% are in select"),
        ({}, [FUNCTION | {"share": 0.04}], {}, "Of the main thread's samples, no function of the user's own has more than "
         "4.0%: 40% are in select"),
        ({"label": "all threads"}, [FUNCTION], {}, "Of the samples, 50% are in a → b (c.py:1)"),
        ({"label": "thread loader"}, [FUNCTION], {}, "Of thread loader's samples, 50% are in a → b (c.py:1)"),
    ],
)  # fmt: skip
def test_sentences(thread, functions, about, said):
    assert shown(THREAD | thread, functions, ABOUT | about).removesuffix(" which code takes the time") == said


def test_a_function_is_compared_without_its_line():
    assert function_only("merge (data.py:17)") == "merge (data.py)"
    assert function_only("main.alpha") == "main.alpha"


def test_compare_says_whose_share_changed(tmp_path, capsysbinary):
    base, new = (
        make.write(tmp_path / name, data)
        for name, data in (
            ("a.json", make.speedscope()),
            ("b.json", make.speedscope([*make.SAMPLES, *[(make.MAIN, make.STEP)] * 50])),
        )
    )
    code, text, _ = run(capsysbinary, "compare", base, new)
    assert code == 0
    assert "Most that one function of the user's has" in text and "59% instead of 82%" in " ".join(text.split())
    assert "of step (train.py)" in " ".join(text.split())


@pytest.mark.parametrize(
    "data, words",
    [(make.speedscope(), "py-spy record --idle"), (make.viztracer(), "VizTracer"), (make.perf_script(), "--offset")],
)
def test_doctor_says_what_to_record(tmp_path, capsysbinary, data, words):
    _, text, _ = run(capsysbinary, "doctor", make.write(tmp_path / "p.json", data))
    assert words in text


def test_no_folder_of_the_machine_is_shown(tmp_path, capsysbinary):
    path = make.write(tmp_path / "v.json", make.viztracer(base=1_795_884_000 * 10**9))
    page = tmp_path / "page.html"
    code, text, _ = run(capsysbinary, "report", path, "-o", page)
    assert code == 0
    for said in (text, page.read_text()):
        assert "/home/ann" not in said and "SECRET" not in said
    assert "merge (data.py:17)" in page.read_text()


def test_the_same_bytes_twice(tmp_path, capsysbinary):
    path = make.write(tmp_path / "p.json", make.speedscope())
    pages = []
    for name in ("a", "b"):
        run(capsysbinary, "report", path, "-o", tmp_path / name)
        pages.append((tmp_path / name).read_bytes())
    assert pages[0] == pages[1]


def test_several_profiles_are_told_apart(tmp_path):
    paths = [make.write(tmp_path / f"{name}.json", make.speedscope()) for name in "ab"]
    result: Any = json.loads(ta.analyze(ta.load(paths)).to_json())
    assert len(result["evidence"]) == 2
    assert result["verdict"]["headline"].startswith(
        "Of the main thread's samples outside the import chain, 82% are in tokenize → merge (data.py:17)"
    )
