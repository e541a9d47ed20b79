"""Configuration from the nearest pyproject.toml."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from traceanalyzer.config import Config, find_config
from traceanalyzer.errors import ConfigError


def test_the_nearest_file_with_our_table_counts(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.traceanalyzer]\ninput_patterns = ["read_shard*"]\n')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\n")
    assert find_config(inner) == Config(("read_shard*",))


def test_names_of_a_communication_library_of_our_own(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.traceanalyzer]\ncommunication_patterns = ["*my_ring*"]\n')
    assert find_config(tmp_path) == Config(communication_patterns=("*my_ring*",))


def test_defaults_without_one(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert find_config(tmp_path).input_patterns == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.traceanalyzer]\ninput_pattern = []\n", "no key 'input_pattern'"),
        ("[tool.traceanalyzer]\ninput_patterns = 'x'\n", "must be a list of strings"),
        ("[tool.traceanalyzer]\nrules = 'perf'\n", "rules in .* must be a list of strings"),
        ("[tool.traceanalyzer]\ndisable = [1]\n", "disable in .* must be a list of strings"),
        (
            "[tool.traceanalyzer]\ndisabled = []\n",
            "it knows input_patterns, communication_patterns, rules, disable, params and check; did you mean 'disable'",
        ),
        ("[tool]\ntraceanalyzer = 1\n", "must be a table"),
        ("[tool.traceanalyzer.params]\nshort = '50us'\n", "LCH001.short"),
        ("[tool.traceanalyzer\n", "not valid TOML"),
    ],
)
def test_mistakes_name_the_file(tmp_path, text, message):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigError, match=message) as error:
        find_config(tmp_path)
    assert str(tmp_path / "pyproject.toml") in str(error.value)


def test_rules_are_relative_to_the_file(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.traceanalyzer]\nrules = ["perf/rules"]\ndisable = ["KRN005"]\n')
    (tmp_path / "deep").mkdir()
    found = find_config(tmp_path / "deep")
    assert found.rules == (tmp_path / "perf/rules",)
    assert found.disable == {"KRN005": "in pyproject.toml"}


def test_extra_patterns_make_a_range_count_as_input(tmp_path):
    trace = KinetoTrace().op(0, 10, launch=(-5, -2)).range("read_shard_7", 12, 80).op(100, 110, launch=(90, 95))
    loaded = ta.load(trace.write(tmp_path / "t.json"))
    ours = ta.analyze(loaded, Config(("read_shard*",)))
    assert ta.analyze(loaded).devices[0].idle_by_cause_ns["input"] == 0
    assert ours.devices[0].idle_by_cause_ns["input"] == 68_000
    assert ours.verdict.bound_by == "input"


def test_thresholds_reach_their_rule(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.traceanalyzer.params]\nINP001.least = "50%"\n')
    trace = KinetoTrace().op(0, 10, launch=(-5, -2)).range("get_batch", 12, 40).op(100, 110, launch=(90, 95))
    loaded = ta.load(trace.write(tmp_path / "t.json"))
    assert "INP001" in [finding.rule for finding in ta.analyze(loaded).findings]
    assert "INP001" not in [finding.rule for finding in ta.analyze(loaded, find_config(tmp_path)).findings]


def test_a_threshold_that_no_rule_has(tmp_path):
    loaded = ta.load(KinetoTrace().op(0, 10).write(tmp_path / "t.json"))
    with pytest.raises(ConfigError, match="no threshold 'leest'"):
        ta.analyze(loaded, Config(params={"INP001": {"leest": "50%"}}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = " + "[" * 5000, "nested too deeply"),
        ("a = " + "9" * 5000, "not valid TOML"),
        (".".join(["a"] * 100_000) + " = 1", "more than 500 dots"),
        ("# " + "x" * 2_000_000, "larger than"),
        ("[tool.traceanalyzer.params.LCH001]\nshort = 0x" + "f" * 9000, "too large"),
        ("[tool.traceanalyzer.params.LCH001]\nshort = nan", "too large, or none"),
        (b"[tool.traceanalyzer]\n\xff", ":2: is not UTF-8"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_configuration_that_asks_for_much_or_says_nothing(tmp_path, text, says):
    file = tmp_path / "pyproject.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as error:
        find_config(tmp_path)
    assert str(error.value).startswith(str(file)) and says in str(error.value)


def test_what_is_no_file_is_no_configuration(tmp_path):
    os.mkfifo(tmp_path / "pyproject.toml")
    assert find_config(tmp_path) == Config()


def test_paths_from_home_need_one(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text('[tool.traceanalyzer]\nrules = ["~/rules"]\n')

    def none(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", none)
    with pytest.raises(ConfigError, match="there is no home folder"):
        find_config(tmp_path)
