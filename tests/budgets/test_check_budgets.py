"""What a budget means, and what captures come to: broken, kept, or not to be judged. Nothing unknown passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.captures import capture, problem
from traceanalyzer.budgets.assertions import assertions
from traceanalyzer.budgets.expression import compile_comparison
from traceanalyzer.budgets.files import budgets_in
from traceanalyzer.budgets.judge import Given, baseline_for, judge
from traceanalyzer.config import Budgets, Entry, find_config
from traceanalyzer.engine.language.syntax import ExpressionError
from traceanalyzer.errors import ConfigError
from traceanalyzer.result.captures.capture import Capture, Work
from traceanalyzer.result.captures.check import Check, Held

RULES = ["INP001", "COM001", "COM002", "KRN005"]


def check(
    captures: list[Capture],
    *texts: str,
    aggregate: str = "median",
    baseline: list[Capture] | None = None,
    **levels: str,
) -> Check:
    """Hold captures against assertions of level error, and rules by level."""
    entries = [Entry(text, "error", None, "here") for text in texts]
    entries += [Entry(text, level, None, "here") for text, level in levels.items()]
    held = assertions(Budgets(tuple(entries)), RULES, aggregate)
    given = [Given(one, f"runs/{one.name}", False) for one in captures]
    return judge(given, held, baseline or [], "base.json" if baseline else None)


def one(captures: list[Capture], text: str, **more) -> Held:
    (held,) = check(captures, text, **more).assertions
    return held


def idle(*shares: float) -> list[Capture]:
    return [capture(f"run{at}.json", metrics={"idle_share": share}) for at, share in enumerate(shares, 1)]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("idle_share <= 20%", "passed"),
        ("idle_share < 20%", "failed"),
        ("idle_share <= 0.2", "passed"),
        ("idle_share >= 20%", "passed"),
        ("idle_share > 20%", "failed"),
        ("idle_share == 20%", "passed"),
        ("idle_share != 20%", "failed"),
        ("idle_share <= busy_share / 4", "passed"),
        ("idle_share <= (busy_share - 10%) * 0.2", "failed"),
        ("idle_share <= -(0 - 19.9%) + 0.1%", "passed"),
        ("max_gap <= 20us", "passed"),
        ("max_gap <= 0", "failed"),
        ("max_gap <= idle_share * window", "passed"),
        ("findings.high == 0", "failed"),
        ("findings.high <= findings.low + 2", "passed"),
        ("step.mean <= 10ms", "passed"),
        ("kernels_per_step < 100", "failed"),
    ],
)
def test_comparisons(text, outcome):
    figures = {
        "idle_share": 0.2,
        "busy_share": 0.8,
        "max_gap": 20_000,
        "window": 1_000_000,
        "findings.high": 2,
        "findings.low": 0,
    }
    assert one([capture(metrics=figures)], text).outcome == outcome


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("idle_shar <= 20%", "no figure 'idle_shar'; did you mean 'idle_share'", 0),
        ("INP001.shar <= 20%", "did you mean 'INP001.share'", 0),
        ("idle_share <= busi_share", "did you mean 'busy_share'", 14),
        ("idle_share <= baseline.idle_shar", "did you mean 'idle_share'", 14),
        ("idle_share <= 5ms", "cannot compare a share and a time", 14),
        ("step.p95 <= 12", "write the unit", 12),
        ("step.p95 <= baseline + 5%", "cannot add a time and a share", 12),
        ("max_gap <= step.p95 * window", "cannot multiply a time by a time", 11),
        ("idle_share <= 5", "500% of the time; write 5%", 14),
        ("idle_share <= 1 / 0", "divides by zero", 14),
        ("20% >= idle_share", "must stand on the left", 0),
        ("baseline <= 20%", "must stand on the left", 0),
        ("10% <= idle_share <= 20%", "one comparison", 0),
        ("idle_share <= max(1, 2)", "not part of a budget", 14),
        ("idle_share <= 20% and window > 1s", "one comparison", 0),
        ("idle_share = 20%", "no expression", 11),
        ("idle_share <= 'x'", "only numbers and figures", 14),
        ("idle_share <= 20parsecs", "no unit that is known", 14),
    ],
)
def test_what_is_no_comparison_is_said_with_its_column(text, message, column):
    with pytest.raises(ExpressionError, match=message) as error:
        compile_comparison(text, RULES)
    assert error.value.column == column


def test_a_wrong_entry_is_named_with_its_place(tmp_path):
    (tmp_path / "b.yaml").write_text("budgets:\n  INP001: error\n  idle_shar <= 20%: warn\n")
    with pytest.raises(ConfigError, match=r"b\.yaml:3: 'idle_shar <= 20%': .*did you mean 'idle_share'.*\(column 1\)"):
        assertions(budgets_in(tmp_path / "b.yaml"), RULES, "median")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("INP002", "neither a comparison, .* nor a rule; did you mean 'INP001'"),
        ("XYZ*", "no rule has such a name"),
        ("idle_share", "what this figure is held against is missing"),
        ("", "neither a comparison"),
    ],
)
def test_what_is_no_entry(text, message):
    with pytest.raises(ConfigError, match=message):
        check([capture()], text)


def test_no_budget_is_no_pass():
    with pytest.raises(ConfigError, match=r"no budget is set.*--assert .*\[tool\.traceanalyzer\.check\.budgets\]"):
        check([capture()])


def test_several_captures():
    runs = idle(0.10, 0.30, 0.15)
    median, worst = (one(runs, "idle_share <= 20%", aggregate=aggregate) for aggregate in ("median", "worst"))
    assert (median.outcome, median.found, median.actual) == ("passed", 0.15, "15% (median of 3)")
    assert (worst.outcome, worst.found, worst.capture) == ("failed", 0.30, 1)
    assert worst.show == "traceanalyzer analyze runs/run2.json"
    assert [reading.value for reading in worst.readings] == [0.10, 0.30, 0.15]
    # The worst is that which is nearest to breaking it, whatever the sign.
    assert one(runs, "idle_share >= 12%", aggregate="worst").found == 0.10
    assert one(idle(0.1, 0.2), "idle_share <= 16%").found == pytest.approx(0.15)


def test_an_assertion_may_say_how_it_takes_several_captures():
    held = assertions(Budgets((Entry("idle_share <= 20%", "error", "worst", "here"),)), RULES, "median")
    assert judge([Given(run, run.name, False) for run in idle(0.1, 0.1, 0.3)], held, [], None).outcome == "failed"


def test_what_is_unknown_does_not_pass():
    unknown = capture("none.json", steps=0)
    held = one([unknown], "step.p95 <= 1s")
    assert (held.outcome, held.reason, held.actual) == ("could_not_judge", "no steps are marked", "")
    found = check([*idle(0.1, 0.1), unknown], "idle_share <= 20%")
    assert (found.outcome, found.exit_code) == ("could_not_judge", 3)
    assert found.reasons[0].startswith("idle_share <= 20%: ")


def test_what_is_broken_whatever_the_unknown_is_fails():
    unknown = capture("none.json")
    assert one([*idle(0.3), unknown], "idle_share <= 20%", aggregate="worst").outcome == "failed"
    # A median of 30%, 40% and anything is at least 30%; one of 10%, 40% and anything may be 10%.
    assert one([*idle(0.3, 0.4), unknown], "idle_share <= 20%").outcome == "failed"
    assert one([*idle(0.1, 0.4), unknown], "idle_share <= 20%").outcome == "could_not_judge"
    assert one([*idle(0.3, 0.4), unknown], "idle_share >= 35%").outcome == "could_not_judge"
    assert one([*idle(0.3, 0.4), unknown], "idle_share == 20%").outcome == "could_not_judge"


def test_step_times_need_whole_steps():
    figures = {"step.count": 2, "step.p95": 9_000_000, "step.spread": 0.0}
    assert one([capture(metrics=figures, steps=1)], "step.p95 <= 10ms").outcome == "passed"
    assert one([capture(metrics=figures, steps=1)], "step.spread <= 10%").reason == "too few whole steps were recorded"
    assert one([capture(metrics=figures, steps=0)], "step.p95 <= 10ms").outcome == "could_not_judge"


def test_a_damaged_capture_passes_nothing():
    damaged = capture("cut.json", metrics={"idle_share": 0.1}, damage=["the file ends early"])
    found = check([damaged], "idle_share <= 20%")
    assert (found.assertions[0].outcome, found.outcome) == ("passed", "could_not_judge")
    assert found.headline == "Could not judge: cut.json: the file ends early."
    assert check([damaged], "idle_share <= 5%").outcome == "failed"
    only_warned = check([damaged], **{"idle_share <= 20%": "warn"})
    assert only_warned.outcome == "could_not_judge"


def test_figures_of_a_capture_that_could_not_be_judged_are_not_believed():
    hidden = capture("bad.json", metrics={"idle_share": 0.9}, unjudged="Could not judge: the clocks run apart.")
    found = check([hidden], "idle_share <= 20%")
    assert found.exit_code == 3
    assert found.assertions[0].reason == "the clocks run apart"
    assert found.assertions[0].show == "traceanalyzer doctor runs/bad.json"


def test_warnings_fail_nothing():
    found = check(idle(0.5), "idle_share <= 90%", **{"idle_share <= 20%": "warn", "step.p95 <= 1s": "warn"})
    assert (found.outcome, found.exit_code) == ("passed", 0)
    assert found.headline == "Passed: 1 of 3 budgets is kept, 1 only warned about, 1 could not be judged."


def test_rules():
    fired = capture(
        rules={"INP001": "fired", "COM001": "not_applicable", "COM002": "could_not_judge", "KRN005": "clean"},
        reasons={"COM001": "no communication", "COM002": "ranks are missing"},
        metrics={"INP001.findings": 1, "INP001.share": 0.4, "KRN005.findings": 0},
        problems=[problem("INP001", "GPU 0 waits for the loader.")],
    )
    found = {
        held.text: held
        for held in check([fired], INP001="error", COM001="error", COM002="warn", KRN005="off").assertions
    }
    broken = found["INP001"]
    assert (broken.outcome, broken.actual) == ("failed", "1 finding, 40% of the time")
    assert broken.message == "GPU 0 waits for the loader."
    assert (broken.show, broken.look_at) == (
        "traceanalyzer report runs/run.json -o report.html",
        "report.html#finding=INP001",
    )
    assert (found["COM001"].outcome, found["COM001"].actual, found["COM001"].reason) == (
        "passed",
        "does not apply",
        "no communication",
    )
    assert (found["COM002"].outcome, found["COM002"].reason) == (
        "could_not_judge",
        "COM002 could not judge: ranks are missing",
    )
    assert (found["KRN005"].outcome, found["KRN005"].readings) == ("off", [])
    assert one([fired], "COM001.share <= 5%").reason == "COM001 does not apply: no communication"


def test_a_rule_in_several_captures():
    runs = [capture(metrics={"INP001.findings": count}, rules={"INP001": "clean"}) for count in (0, 0, 3)]
    assert one(runs, "INP001").outcome == "passed"
    held = one(runs, "INP001", aggregate="worst")
    assert (held.outcome, held.actual) == ("failed", "in 1 of 3 captures")


def test_the_entry_that_names_a_rule_counts():
    entries = [Entry("COM001", "off", None, "a"), Entry("*", "error", None, "a"), Entry("COM*", "warn", None, "a")]
    levels = {held.rule: held.level for held in assertions(Budgets(tuple(entries)), RULES, "median")}
    assert levels == {"COM001": "off", "COM002": "warn", "INP001": "error", "KRN005": "error"}


def test_of_one_assertion_twice_the_later_counts():
    entries = [Entry("idle_share <= 20%", "error", None, "a"), Entry("idle_share  <= 20% ", "warn", None, "b")]
    assert [held.level for held in assertions(Budgets(tuple(entries)), RULES, "median")] == ["warn"]


def test_a_check_of_nothing_does_not_pass():
    for entries in ((), (Entry("idle_share <= 20%", "off", None, "here"), Entry("INP001", "off", None, "there"))):
        with pytest.raises(ConfigError, match="nothing to check"):
            assertions(Budgets(entries), RULES, "median")


def test_the_baseline():
    base = idle(0.10, 0.30, 0.20)
    held = one(idle(0.22), "idle_share <= 1.1 * baseline", baseline=base)
    assert (held.outcome, held.limit, held.expected) == ("passed", pytest.approx(0.22), "at most 22% (1.1 * baseline)")
    held = one(idle(0.23), "idle_share <= 1.1 * baseline", baseline=base)
    assert (held.outcome, held.show) == ("failed", "traceanalyzer compare base.json runs/run1.json")
    assert one(idle(0.2), "idle_share <= baseline.idle_share", baseline=base).outcome == "passed"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"gpus": ["Other GPU"]}, "the baseline does not compare: it ran on Other GPU, the capture on Test GPU"),
        ({"gpus": ["Test GPU"] * 2}, "the baseline does not compare: it shows 2 GPUs, the capture 1"),
        ({"metrics": {}}, "the baseline says nothing of idle_share: it does not hold this figure"),
        ({"damage": ["it was cut"]}, "the baseline says nothing of idle_share: it was cut"),
    ],
)
def test_a_baseline_that_does_not_compare(change, reason):
    (base,) = idle(0.5)
    held = one(idle(0.1), "idle_share <= 1.1 * baseline", baseline=[replace(base, **change)])
    assert held.outcome == "could_not_judge"
    assert held.reason.startswith(reason)


def test_a_median_of_different_machines():
    runs = idle(0.1, 0.1)
    mixed = [runs[0], replace(runs[1], gpus=["Other GPU"])]
    assert one(mixed, "idle_share <= 20%").outcome == "could_not_judge"
    assert one(mixed, "idle_share <= 20%", aggregate="worst").outcome == "passed"


def test_steps_of_other_work_do_not_compare():
    """Steps that are marked at other places: each has twice as many of all kernels."""
    short = capture("short.json", metrics={"step.p95": 5_000_000, "idle_share": 0.1})
    short = replace(short, kernels=[Work("gemm", 40.0, 1_000_000, None), Work("norm", 20.0, 1_000_000, None)])
    kernels = [replace(work, count=2 * work.count) for work in short.kernels]
    assert short.unit is not None
    long = replace(short, kernels=kernels, unit=replace(short.unit, kernels=120.0))
    held = one([short], "step.p95 <= 1.1 * baseline", baseline=[long])
    assert held.outcome == "could_not_judge"
    assert held.reason is not None and "a step of it has 120 kernels" in held.reason
    # Shares of the time do not depend on what a step is.
    assert one([short], "idle_share <= 1.1 * baseline", baseline=[long]).outcome == "passed"


def test_a_budget_that_reads_a_baseline_needs_one(tmp_path):
    held = assertions(Budgets((Entry("idle_share <= baseline", "error", None, "here"),)), RULES, "median")
    with pytest.raises(ConfigError, match="there is no baseline; name one with --baseline"):
        baseline_for(held, None)
    with pytest.raises(ConfigError, match="there is no such baseline; `traceanalyzer baseline save"):
        baseline_for(held, tmp_path / "none.json")
    assert baseline_for([replace(held[0], level="off")], None) is None


def test_figures_are_told_apart_in_words():
    held = one(idle(0.2004), "idle_share <= 20% + 0%")
    assert (held.expected, held.actual) == ("at most 20% (20% + 0%)", "20.04%")


def test_off_without_quotes_in_yaml(tmp_path):
    (tmp_path / "b.yaml").write_text("budgets: {INP001: off, COM001: warn}\naggregate: worst\nbaseline: perf/b.json\n")
    budgets = budgets_in(tmp_path / "b.yaml")
    assert [(entry.text, entry.level) for entry in budgets.entries] == [("INP001", "off"), ("COM001", "warn")]
    assert (budgets.aggregate, budgets.baseline) == ("worst", tmp_path / "perf/b.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("budgets: {INP001: eror}", "b.yaml:1: 'INP001': the level is off, warn or error, not 'eror'"),
        ("budgets: {INP001: {levl: warn}}", "no key 'levl'; it knows level and aggregate; did you mean 'level'?"),
        ("budgets: {INP001: {aggregate: mean}}", "aggregate is median or worst, not 'mean'"),
        ("budget: []", "no key 'budget'; it knows aggregate, baseline and budgets; did you mean 'budgets'?"),
        ("aggregate: mean", "aggregate is median or worst, not 'mean'"),
        ("baseline: 3", "baseline must be the path of a file"),
        ("budgets: 3", "budgets holds lines such as"),
        ("- INP001", "must hold aggregate, baseline and budgets"),
        ("budgets: [", "b.yaml:2:1: no YAML"),
        ("", "is empty"),
    ],
)
def test_mistakes_in_a_file_of_budgets(tmp_path, text, message):
    (tmp_path / "b.yaml").write_text(text)
    with pytest.raises(ConfigError) as error:
        budgets_in(tmp_path / "b.yaml")
    assert message in str(error.value)


def test_budgets_in_pyproject(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.traceanalyzer.check]\nbaseline = "perf/b.json"\nbudgets = ["INP001", "idle_share <= 20%"]\n'
    )
    (tmp_path / "src").mkdir()
    found = find_config(tmp_path / "src").check
    assert found.baseline == tmp_path / "perf/b.json"
    assert [(entry.text, entry.level) for entry in found.entries] == [
        ("INP001", "error"),
        ("idle_share <= 20%", "error"),
    ]
    assert budgets_in(tmp_path / "pyproject.toml") == found


def test_mistakes_in_pyproject(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.traceanalyzer.check.budgets]\nINP001 = 'fatal'\n")
    with pytest.raises(
        ConfigError, match=r"pyproject.toml: \[tool.traceanalyzer.check\]: 'INP001': the level is off, warn or error"
    ):
        find_config(tmp_path)
