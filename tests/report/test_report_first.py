"""The first screen and the cards of the findings: what matters, in the rule's own words, with what would change our mind."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from report_sample import HOSTILE, HOSTILE_TOO, Sample, rows, sample

from tests.support.job_results import job_result
from traceanalyzer.report.html import render_html
from traceanalyzer.report.palette import BOUND_BY_KEYS, SWATCHES, ink_on, luminance
from traceanalyzer.report.sections.findings_view import finding_groups
from traceanalyzer.report.sections.glossary import BOUND_BY, GLOSSARY
from traceanalyzer.report.sections.gpu_names import gpu_labels, gpu_names, rank_namer
from traceanalyzer.report.sections.many_gpus import DRAWN, gpus_to_show
from traceanalyzer.report.sections.trace.charts import steps_views
from traceanalyzer.report.sections.trace.first import MATTERING, first_view
from traceanalyzer.result.document import Health, Result, RuleOutcome, Saving, Scope, Verdict
from traceanalyzer.result.gpus import notable_gpus
from traceanalyzer.result.words.gain import gain

SECOND = 1_000_000_000
GRAVE = Health("TRC002", "high", "40% of the launches have no kernel", 40, None)


def seen(result: Result) -> str:
    """What a reader of the page sees and hears, without scripts."""
    page = render_html(result, Sample()).decode()
    return html.unescape(re.sub(r"<script.*?</script>|<style>.*?</style>", "", page, flags=re.S))


def first(result: Result):
    return first_view(result, [group.first for group in finding_groups(result, lambda _: None)])


def test_what_pays_and_matters_comes_first() -> None:
    result = sample()[0]
    view = first(result)
    assert [f.finding.rule for f in view.findings] == ["INP001", "LCH001"]
    assert view.calm is None and view.judged
    others = [replace(result.findings[0], rule=f"INP00{n}") for n in range(2, 7)]
    view = first(replace(result, findings=[result.findings[0], *others]))
    assert (len(view.findings), view.more) == (MATTERING, 3)


def test_what_does_not_pay_is_calm() -> None:
    result = replace(sample()[0], verdict=Verdict("compute", "GPU 0 computes."))
    little = replace(result.findings[0], severity="info")
    no_use = replace(little, saving=Saving(5, 0.1, 1.1, None, predicted_speedup=1.001))
    assert "What little there is to gain" in (first(replace(result, findings=[little])).calm or "")
    calm = first(replace(result, findings=[no_use])).calm or ""
    assert calm == (
        "Nothing worth fixing found. 3 rules looked; 1 could not judge. How near its kernels come to the GPU's peak could not be "
        "judged: no shapes of operators were recorded."
    )
    # A GPU that stands idle is not fine because no rule knows why.
    idle = replace(result, verdict=Verdict("host", "GPU 0 is idle."), findings=[])
    assert "Nothing worth fixing" not in (first(idle).calm or "")


@pytest.mark.parametrize("severity", ["low", "medium", "high"])
def test_nothing_worth_fixing_never_stands_above_a_finding(severity) -> None:
    """A leak has no time to gain; what the replay denies may still be grave."""
    result = sample()[0]
    for saving in (Saving(None, None, None, None), Saving(5, 0.1, 1.1, None, predicted_speedup=1.001)):
        found = replace(result.findings[0], severity=severity, saving=saving)
        view = first(replace(result, findings=[found]))
        shown = saving.recoverable_ns is None or severity != "low"
        assert bool(view.findings) is shown and (view.calm is None) is shown
        assert render_html(replace(result, findings=[found]), Sample())


@pytest.mark.parametrize("change", [{"health": [GRAVE]}, {"devices": []}])
def test_what_cannot_be_judged_says_what_to_record_before_all_else(change) -> None:
    result = replace(sample()[0], **change)
    view = first(result)
    assert not view.judged and view.calm is None and not view.findings
    text = seen(result)
    assert text.index("What to record") < text.index("Trace health") and "bound by" not in text


def test_what_to_record_is_the_advice_of_the_rule_about_it() -> None:
    result = sample()[0]
    about = replace(
        result.findings[2],
        rule=GRAVE.code,
        recommend=[{"any": "Record longer: `nsys profile --delay=5 python train.py`"}],
    )
    ((framework, (advice,)),) = first(replace(result, health=[GRAVE], findings=[about])).record
    assert (framework, advice.code) == ("Any program", "nsys profile --delay=5 python train.py")


def test_health_has_the_units_of_the_page() -> None:
    note = Health("TRC010", "low", "the GPU's work spans only 5 us", 1, None)
    assert "spans only 5\N{NO-BREAK SPACE}µs" in seen(replace(sample()[0], health=[note]))


def test_health_is_one_line_with_the_gravest_first() -> None:
    notes = [
        Health("TRC001", "low", "12 events were cut off", 12, None),
        GRAVE,
        Health("TRC004", "info", "short", 1, None),
    ]
    rules = [RuleOutcome("TRC001", "fired", None, why="What cannot be read is missing.")]
    health = first(replace(sample()[0], health=notes, rules=rules)).health
    assert health.counts == [("high", 1), ("low", 1), ("info", 1)]
    assert [(note.code, why) for note, why in health.notes][:2] == [
        ("TRC002", ""),
        ("TRC001", "What cannot be read is missing."),
    ]


def test_cards_speak_in_the_rules_own_words() -> None:
    result = sample()[0]
    rules = [
        RuleOutcome(
            "INP001",
            "fired",
            None,
            "Late batches",
            f"It comes late. {HOSTILE_TOO}",
            ["A full queue."],
            {"lost": "sum(duration)", "longest_share": "max(duration) / lost"},
            figures={"lost": "idle time in all"},
        ),
        RuleOutcome("SYN001", "clean", None, f"Waits {HOSTILE}", "The host waits."),
    ]
    text = seen(replace(result, rules=rules))
    for words in (
        "It comes late.",
        "A full queue.",
        "The rule computes it as: sum(duration)",
        f"Waits {HOSTILE}",
        "The host waits.",
        "idle time in all",
    ):
        assert words in text
    # Steps of its calculation are not for people.
    assert "longest share" not in text and "max(duration)" not in text


@pytest.mark.parametrize(
    ("saving", "words", "term"),
    [
        (
            Saving(1, 0.3, 1.6, 1, 20_100_000, 13_200_000, 1.52),
            "1.52× faster without it; an average step takes 13.2 ms instead of 20.1 ms",
            "predicted",
        ),
        (
            Saving(1, 0.3, 1.6, 1, 20_100_000, 13_200_000, 1.52, "Had the rank come in time"),
            "1.52× faster had the rank come in time; a typical step would take 13.2 ms instead of 20.1 ms",
            "predicted",
        ),
        (
            Saving(1, 0.3, 1.6, None, predicted_speedup=1.52),
            "1.52× faster without it, over the whole recording",
            "predicted",
        ),
        (Saving(SECOND, 0.3, 1.61, 8_100_000), "at most 1.61× faster without it; it costs 8.1 ms of a step", "at most"),
        (Saving(SECOND, 0.3, 1.61, None), "at most 1.61× faster without it; it costs 1 s in all", "at most"),
        (Saving(SECOND, 1.0, None, None), "It costs 1 s in all", "claimed"),
        (
            Saving(1, 0.3, 1.6, 1, predicted_speedup=1.0),
            "no faster without it alone: something else sets the pace",
            "no gain",
        ),
    ],
)
def test_a_gain_says_how_it_was_found(saving: Saving, words: str, term: str) -> None:
    found = gain(saving)
    assert found and (found.words, found.term) == (words, term)
    assert term in GLOSSARY


def test_nothing_to_gain_says_nothing() -> None:
    assert gain(Saving(None, None, None, None)) is None and gain(Saving(0, 0.0, 1.0, 0)) is None


def test_what_one_gpu_of_a_job_gains_is_said_to_need_all() -> None:
    result = job_result(3)
    lower = replace(result.findings[1], saving=Saving(1, 0.3, 1.6, 1, predicted_speedup=1.52))
    whole = replace(result, findings=[result.findings[0], lower])
    stall, one = (group.first.gain for group in finding_groups(whole, lambda _: None))
    assert one and one.words == "1.52× faster without it on all GPUs, over the whole recording"
    assert stall and "on all GPUs" not in stall.words
    (alone,) = finding_groups(replace(whole, findings=[lower], devices=result.devices[:1]), lambda _: None)
    assert alone.first.gain and "on all GPUs" not in alone.first.gain.words


def test_every_bound_has_a_meaning_and_every_definition_is_a_sentence() -> None:
    assert {*BOUND_BY_KEYS, "unknown"} == set(BOUND_BY)
    assert all(text[0].isupper() and text.endswith(".") for text in GLOSSARY.values())


def test_gpus_without_a_rank_are_not_mistaken_for_each_other() -> None:
    result = job_result(40, late=30)
    devices = [replace(device, rank=None) for device in result.devices]
    assert result.job
    late = [replace(one, rank=None) for one in result.job.late_ranks]
    steps = [replace(one, rank=None, count=number) for number, one in enumerate(result.steps)]
    unnamed = replace(result, devices=devices, steps=steps, job=replace(result.job, late_ranks=late))
    assert 30 in notable_gpus(result, 4)
    positions = notable_gpus(unnamed, DRAWN)
    assert gpus_to_show(unnamed) == positions
    labels = [str(at) for at in range(40)]
    views = steps_views(positions, unnamed, labels)
    assert [(view.label, view.steps.count) for view in views] == [(str(at), at) for at in positions]
    # The late one is not told from the others, so none of them stands for it: only the extremes and the first ones are left.
    for most in (2, DRAWN):
        assert notable_gpus(unnamed, most) == notable_gpus(replace(unnamed, job=None), most)


def test_gpus_of_files_without_a_rank_are_called_by_their_file() -> None:
    result = job_result(3, late=1)
    inputs = [replace(one, rank=rank) for one, rank in zip(result.inputs, (None, 1, None), strict=True)]
    inputs[2] = replace(inputs[2], path="/data/a-name-that-is-far-too-long-to-stand-for-a-gpu.json")
    devices = [replace(device, rank=one.rank) for device, one in zip(result.devices, inputs, strict=True)]
    mixed = replace(result, inputs=inputs, devices=devices)
    tables = Sample(ledger=rows("ledger", rank=[0, 1, 2], device=0))
    labels = gpu_labels(mixed, tables, rank_namer(mixed))
    assert labels == ["rank0.json (GPU 0)", "rank 1 (GPU 0)", "a-name-that-is-f…d-for-a-gpu.json (GPU 0)"]
    assert gpu_names(mixed, labels) == [labels[0], "rank 1 (GPU 0)", labels[2]]
    assert gpu_labels(mixed, None, rank_namer(mixed)) == ["GPU 0", "rank 1 (GPU 0)", "GPU 0"]
    page = render_html(mixed, tables).decode()
    assert page.count("<b>rank0.json (GPU 0)</b>") == 1  # its ledger


def test_words_in_the_ledger_bar_stand_out() -> None:
    for colour in (colour for swatch in SWATCHES for colour in (swatch.light, swatch.dark)):
        darker, lighter = sorted([luminance(colour), luminance(ink_on(colour))])
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, colour


def test_a_share_of_several_gpus_is_not_said_to_be_of_one() -> None:
    result = job_result(4)
    windows = sum(device.window_ns for device in result.devices)
    late = replace(result.findings[0], scope=Scope(2, 0), saving=Saving(windows // 4, 0.25, 1.3, None, gpu_count=4))
    one = replace(result.findings[1], saving=Saving(result.devices[0].window_ns // 4, 0.25, 1.3, None))
    found = finding_groups(replace(result, findings=[late, one]), lambda _: None)
    assert [group.first.of for group in found] == ["the time of 4 GPUs", "the window"]
    gains = [group.first.gain.words for group in found if group.first.gain]
    assert gains == [
        "at most 1.30× faster without it; it costs 1 s of 4 GPUs together",
        "at most 1.30× faster without it; it costs 250 ms in all",
    ]
    text = seen(replace(result, findings=[late, one]))
    assert "25% of the time of 4 GPUs" in text and "25% of the window" in text


def test_several_gpus_have_their_names_on_the_first_screen() -> None:
    result = job_result(3)
    screen = re.sub(r"<[^>]+>", "", seen(result).partition('id="health"')[0])
    assert "rank 0 (GPU 0) and 2 more" in screen
