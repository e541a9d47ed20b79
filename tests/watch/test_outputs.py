"""What a watcher keeps for machines: metrics, and a line for each capture whoever was stopped when."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.history.nights import Case, entries_of, host_longer
from tests.watch.scene import DAY_NS, FIRST_NS, Scene, trace
from traceanalyzer.render.history.trend_prometheus import render_trend_metrics
from traceanalyzer.result.history.trend import STATES, trend_of
from traceanalyzer.result.history.verdicts import REAL

Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{((?:{LABEL})(?:,{LABEL})*)\}})? ([-+]?[0-9.e+-]+)")
PLAIN = {r"\n": "\n", r"\"": '"', r"\\": "\\"}


def parsed(text: str) -> Samples:
    """Samples by name and labels; each name is told of once, before its samples, which stand together."""
    assert text.endswith("\n")
    found: Samples = {}
    told: list[tuple[str, str]] = []
    for line in filter(None, text.splitlines()):
        if line.startswith("#"):
            _, what, name, words = line.split(" ", 3)
            assert (what, name) not in told and name not in found and words
            told.append((what, name))
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        name, labels, value = match.groups()
        assert told[-2:] == [("HELP", name), ("TYPE", name)]
        pairs = [
            (pair.partition("=")[0], plain(pair.partition("=")[2][1:-1])) for pair in re.findall(LABEL, labels or "")
        ]
        assert tuple(pairs) not in found.setdefault(name, {})
        found[name][tuple(pairs)] = float(value)
    return found


def plain(text: str) -> str:
    return re.sub(r'\\["\\n]', lambda match: PLAIN[match[0]], text)


def test_metrics_of_captures_that_were_taken(scene: Scene) -> None:
    for night in range(3):
        scene.land(f"night{night}.json", trace(night, 300 + 10 * night))
    scene.look(labels=["config=small"])
    samples = parsed(scene.metrics.read_text())
    names = {name.removeprefix("traceanalyzer_"): values for name, values in samples.items()}
    own = (("project", ""), ("config", "small"))
    last = scene.entries()[-1]
    assert names["history_captures"] == {own: 3}
    assert names["history_unjudged"] == {own: 0}
    assert names["history_unit_seconds"][own] == pytest.approx((last.unit_ns or 0) / 1e9)
    assert names["history_recorded_timestamp_seconds"][own] == (FIRST_NS + 2 * DAY_NS) // 10**9
    lines = names["history_ledger_seconds"]
    assert sum(lines.values()) == pytest.approx((last.unit_ns or 0) / 1e9, abs=1e-8)
    states = {dict(labels)["state"]: value for labels, value in names["history_state"].items()}
    assert states == {state: float(state == "could_not_judge") for state in STATES}


def test_metrics_of_several_series_and_of_odd_names() -> None:
    entries = entries_of(Case("host", REAL, 0.08, host_longer), 0)
    odd = 'a "quoted" \\ name\nof two lines'
    others = [replace(one, id=f"{one.id}-", labels=one.labels | {"config": odd}) for one in entries[:10]]
    trend = trend_of([*entries, *others])
    samples = parsed(render_trend_metrics(trend, [*entries, *others]))
    captures = next(values for name, values in samples.items() if name.endswith("history_captures"))
    assert {dict(labels)["config"]: value for labels, value in captures.items()} == {
        "": 40.0,
        odd.replace("\n", "?"): 10.0,
    }
    changes = next(values for name, values in samples.items() if name.endswith("history_change_ratio"))
    assert changes[("project", ""), ("config", "")] == pytest.approx(0.08, abs=0.01)


def test_metrics_of_an_empty_history(scene: Scene) -> None:
    scene.look()
    assert parsed(scene.metrics.read_text()) == {}
    assert "<!doctype html>" in (scene.reports / "index.html").read_text()[:200].lower()
    assert not scene.log.exists() or scene.lines() == []


def test_the_index_leads_to_the_reports_and_the_history_too(scene: Scene) -> None:
    scene.land("night.json", trace())
    scene.look()
    (entry,) = scene.entries()
    assert f'href="{entry.id}.html"' in (scene.reports / "index.html").read_text()
    assert entry.report and (scene.history / entry.report).resolve() == scene.reports / f"{entry.id}.html"


def test_a_line_of_the_log(scene: Scene) -> None:
    scene.land("night.json", trace())
    scene.look(labels=["config=small", "commit=c1"])
    (line,), (entry,) = scene.lines(), scene.entries()
    assert (line["id"], line["name"], line["series"]) == (entry.id, "night.json", "small")
    assert (line["unit"], line["unit_ns"], line["time_ns"]) == ("step", entry.unit_ns, FIRST_NS)
    assert line["labels"]["commit"] == "c1"
    assert {one["rule"] for one in line["findings"]} == {one.rule for one in entry.findings}


def test_a_log_that_was_cut_short_is_made_whole(scene: Scene) -> None:
    for night in range(3):
        scene.land(f"night{night}.json", trace(night))
    scene.look()
    whole = scene.log.read_bytes()
    scene.log.write_bytes(whole[: len(whole) - 30])
    scene.land("night3.json", trace(3))
    scene.look()
    lines = scene.log.read_bytes().splitlines(keepends=True)
    assert lines[:3] == whole.splitlines(keepends=True)
    assert [line["id"] for line in scene.lines()] == [entry.id for entry in scene.entries()]


def test_lines_of_others_in_the_log_stay(scene: Scene) -> None:
    scene.log.write_text('not json\n{"other": 1}\n[]\n')
    scene.land("night.json", trace())
    scene.look()
    lines = scene.log.read_text().splitlines()
    assert lines[:3] == ["not json", '{"other": 1}', "[]"]
    assert len(lines) == 4
