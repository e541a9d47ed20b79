"""docs/history.md and docs/watch.md name what is there: files, columns, labels, metrics, fields and options."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.history.nights import CASES, entries_of, night
from tests.support.action import ROOT
from traceanalyzer.history.rows import SCHEMA
from traceanalyzer.render.history.trend_prometheus import render_trend_metrics
from traceanalyzer.result.history.entry import LABELS
from traceanalyzer.result.history.fleet import HOURS
from traceanalyzer.result.history.trend import STATES, trend_of
from traceanalyzer.result.history.verdicts import VERDICTS
from traceanalyzer.watch.landing import captures_in
from traceanalyzer.watch.notices import Told
from traceanalyzer.watch.outputs import Kept, write_outputs

HISTORY = (ROOT / "docs" / "history.md").read_text()
WATCH = (ROOT / "docs" / "watch.md").read_text()


def section(text: str, title: str) -> str:
    return re.split(r"^#+ ", text.split(f"# {title}\n")[1], flags=re.M)[0]


def named(text: str) -> list[str]:
    """What the first cells of a table name."""
    return [name for row in re.findall(r"^\| (`[^|]*) \|", text, re.M) for name in re.findall(r"`([^`]+)`", row)]


def test_columns_and_labels():
    assert sorted(named(section(HISTORY, "On the disk"))) == sorted(SCHEMA.names)
    assert set(named(section(HISTORY, "Labels"))) == {*LABELS, HOURS}


def test_verdicts():
    told = re.findall(r"^\| \*\*(\w+)\*\*", section(HISTORY, "Whose doing it is"), re.M)
    assert sorted(told) == sorted(VERDICTS)


def test_metrics():
    entries = entries_of(next(case for case in CASES if case.name.startswith("host_longer")), seed=1)
    written = re.findall(r"^# TYPE (\w+)", render_trend_metrics(trend_of(entries), entries), re.M)
    table = section(WATCH, "Metrics")
    told = {f"traceanalyzer_history{name.removeprefix('traceanalyzer_history')}" for name in named(table)}
    assert told == set(written)
    assert set(re.findall(r"`(\w+)`", table.partition("`state` is")[2].partition(" |")[0])) == set(STATES)


def test_fields_of_the_log(tmp_path):
    entry = night(0, np.random.default_rng(1))
    kept = Kept(tmp_path, None, tmp_path / "log", None)
    write_outputs(kept, trend_of([entry]), [entry])
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert set(named(section(WATCH, "The log"))) == set(json.loads(line))


def test_a_notice(tmp_path):
    entries = [
        replace(entry, labels={**entry.labels, "project": "llm", "config": "8gpu-bf16"})
        for entry in entries_of(next(case for case in CASES if case.name == "host_longer +0.08"), seed=1)
    ]
    (notice,) = Told(tmp_path).missing(trend_of(entries), entries, VERDICTS)
    told = json.loads(section(WATCH, "Notices").split("```json\n")[1].split("```")[0])
    said = notice.document()
    assert {name: type(value) for name, value in told.items() if name != "report"} == {
        name: type(value) for name, value in said.items() if name != "report"
    }
    assert list(told) == list(said) and set(told["series"]) == set(said["series"])
    assert re.fullmatch(
        r"llm / 8gpu-bf16: since 20\d\d-\d\d-\d\d \(commit c00\d\d\) a step takes [\d.]+% more time, [\d.]+ ms instead of [\d.]+ ms: "
        r"[\d.]+ ms of host work instead of [\d.]+ ms \(HST001 .*\)\.",
        said["text"],
    )


def test_names_that_are_left_alone(tmp_path):
    sentence = WATCH.partition("end with ")[2].partition(" are left alone")[0]
    endings = re.findall(r"`([^`]+)`", sentence)
    for ending in endings:
        (tmp_path / f"run{ending}").write_text("x")
    (tmp_path / ".run").write_text("x")
    (tmp_path / "run.json").write_text("x")
    assert len(endings) == 7 and [one.name for one in captures_in(tmp_path)] == ["run.json"]


def test_options_named_in_the_pages_exist():
    for page, modules in (
        (WATCH, ["watch", "history", "common"]),
        (HISTORY, ["history", "captures", "compare", "check", "common"]),
    ):
        code = "".join((ROOT / "traceanalyzer" / "cli" / f"{name}.py").read_text() for name in modules)
        for option in set(re.findall(r"`(--[a-z-]+)", page)):
            name = option.removeprefix("--").replace("-", "_")
            assert f'"{option}"' in code or re.search(rf"^    {name}_?: ", code, re.M), option


def test_links_lead_somewhere():
    for page in (Path("docs/history.md"), Path("docs/watch.md"), Path("docs/recipes/README.md")):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
            assert (ROOT / page.parent / link).exists(), f"{page}: {link}"
