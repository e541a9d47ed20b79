"""A comparison as text and Markdown: faster or slower, by how much, how sure, and why, in the first lines."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.support.comparisons import MS, US, capture, change, comparison, problem, refused, side
from traceanalyzer.redaction.data import redaction_of
from traceanalyzer.render.comparing.compare_markdown import render_comparison_markdown
from traceanalyzer.render.comparing.compare_text import render_comparison
from traceanalyzer.render.lines import WIDTH
from traceanalyzer.render.md import LIMIT
from traceanalyzer.result.comparing.alike import notes_on
from traceanalyzer.result.comparing.comparison import Change, Noise, Note
from traceanalyzer.result.comparing.gate import gate
from traceanalyzer.result.comparing.words import advice, ledger_lines, movers, ratio_words, relative_words

HOSTILE = "</script>|`x`\n\n# ::error::\x1b[2J @everyone #12 <img src=x>"


def lines_of(made) -> list[str]:
    return render_comparison(made).splitlines()


def section(made, title: str) -> list[str]:
    """The lines below a title, up to the next empty one."""
    lines = lines_of(made)
    at = next(n for n, line in enumerate(lines) if line.startswith(title))
    end = next((n for n in range(at, len(lines)) if not lines[n]), len(lines))
    return lines[at + 1 : end]


def test_the_first_lines_say_what_came_out():
    lines = lines_of(comparison())
    assert lines[0] == comparison().headline and max(map(len, lines)) <= WIDTH
    assert "        NVIDIA H100 80GB HBM3, 12 steps (annotation), 18.4 ms on average, ±0.8%" in lines
    text = " ".join(render_comparison(comparison()).split())
    assert "BASE varies by 0.8% and NEW varies by 1.1%; changes below 2.0% do not count; ranges hold with 95%" in text
    assert "note versions: base ran on torch 2.5.0, new on torch 2.6.0" in text


def test_the_ledger_adds_up():
    rows = [line.rsplit("  ", 1)[0].split() for line in section(comparison(), "WHERE THE TIME WENT")]
    assert [row[0] for row in rows] == ["idle:", "idle:", "compute", "idle:", "1", "="]
    found = ledger_lines(comparison())
    shown = [*found.shown, *filter(None, [found.rest])]
    for field in ("base_ns", "new_ns", "change_ns"):
        assert sum(getattr(line, field) or 0 for line in shown) == getattr(comparison().step, field)
    (rest,) = [line for line in section(comparison(), "WHERE THE TIME WENT") if "1 more line" in line]
    assert rest.split()[3:] == ["300", "us", "301", "us", "+1", "us", "no", "change"]


def test_what_did_not_change_is_counted_and_not_listed():
    kernels = section(comparison(), "KERNELS")
    assert not [line for line in kernels if "relu" in line]
    assert kernels[-1] == "  and 1 that did not change"
    still = comparison(kernels=[change("relu", 2 * MS, 2 * MS), change("add", 1 * MS, 1 * MS)])
    assert "KERNELS: no change in any of 2" in lines_of(still)
    assert not [line for line in lines_of(comparison(collectives=[])) if "COLLECTIVES" in line]


def test_new_and_vanished_kernels_are_marked():
    rows = [line.split() for line in section(comparison(), "KERNELS")]
    assert ["-", "400", "us", "+400", "us", "new", "fused_add_mul"] in rows
    assert ["400", "us", "-", "-400", "us", "gone", "add_kernel"] in rows
    fewer = comparison(kernels=[change("add_kernel", 400 * US, 200 * US, base_count=24, new_count=12)])
    assert section(fewer, "KERNELS")[1].endswith("-50%    add_kernel, 24 → 12 times")


def test_of_many_the_largest_changes_are_shown():
    many = [change(f"kernel_{n}", 1 * MS, (1 * MS) + n * 100 * US) for n in range(-9, 12)]
    found = movers(many, 8)
    assert [one.name for one in found.slower] == [f"kernel_{n}" for n in range(11, 3, -1)]
    assert [one.name for one in found.faster] == [f"kernel_{n}" for n in range(-9, -1)]
    assert (found.left, found.same) == (4, 1) and found.slower_ns == 6_600 * US and found.faster_ns == -4_500 * US
    assert section(comparison(kernels=many), "KERNELS")[-1] == "  and 4 more that changed, 1 that did not change"


def test_findings_stand_by_what_became_of_them():
    lines = section(comparison(), "FINDINGS")
    assert lines[:2] == ["  fixed", "  · INP001 The GPU waits for the data loader: 8 ms before, now none."]
    text = " ".join(" ".join(lines).split())
    assert (
        "new · LCH001 The GPU waits for kernel launches: 1.1 ms, none before. The GPU waits for kernel launches, says"
        in text
    )
    assert "uncovered · KRN005 Tensor cores are idle: 5 ms: was there before, as a smaller share of the time" in text
    assert "could not judge · MEM004 Memory grows: new has no memory events." in text
    assert lines[-1] == "  and 1 that did not change"


def test_a_finding_without_time_says_how_grave_it_is():
    worse = replace(problem("TRC001", "Damage", "worse", None, None), base_severity="low", new_severity="high")
    assert "TRC001 Damage: severity low before, now high." in render_comparison(comparison(problems=[worse]))


def test_a_refusal_begins_with_its_reason_and_what_to_do():
    lines = lines_of(refused())
    assert lines[0] == "Could not judge: base ran on an NVIDIA H100, new on an NVIDIA A100."
    assert lines[1].startswith("→ Record both on the same model of GPU. --anyway compares them")
    assert "refused GPU: base ran on an NVIDIA H100, new on an NVIDIA A100" in lines
    assert not [line for line in lines if line.startswith(("WHERE", "KERNELS", "FINDINGS"))]
    assert "Noise" not in render_comparison(refused())


def test_without_noise_the_figures_stand_with_a_reservation():
    alone = comparison(
        outcome="could_not_judge",
        reason="one step on each side",
        noise=Noise(None, None, None, 0.02, 0.95),
        problems=[],
    )
    text = " ".join(render_comparison(alone).split())
    assert (
        "→ Record several steps on both sides, or name more captures" in text and "Noise could not be measured" in text
    )
    assert "WHERE THE TIME WENT" in text


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        *[(1.0, "0%"), (1.12, "+12%"), (0.5, "-50%"), (1.0003, "+<0.1%"), (0.9999999, "-<0.1%"), (1.996, "+99.6%"), (2.0, "2×")],
        *[(3.216, "3.22×"), (3122.4, "3,122×"), (0.0003, "-99.9%"), (0.0, "-100%"), (0.004, "-99.6%")],
    ],
)  # fmt: skip
def test_ratios_are_never_rounded_to_nothing_or_all(ratio, words):
    assert ratio_words(ratio) == words


def test_a_range_is_written_like_its_figure():
    assert relative_words(Change("x", 10, 22, 12, 2.2, 1.4, 3.1, "slower")) == "2.2× (1.4× to 3.1×)"
    assert relative_words(Change("x", 10, 18, 8, 1.8, 1.4, 2.2, "slower")) == "+80% (+40% to +120%)"
    assert relative_words(Change("x", 0, 18, 18, None, None, None, "slower")) == "new"
    assert relative_words(Change("x", 18, 0, -18, None, None, None, "faster")) == "gone"


def hostile():
    one = change(HOSTILE, 1 * MS, 2 * MS, base_count=1, new_count=3)
    return comparison(
        base=side(HOSTILE, 18_400 * US, gpu=HOSTILE, headline=HOSTILE), headline=HOSTILE, kernels=[one], families=[one],
        operators=[one], collectives=[one],
        problems=[replace(problem("INP001", HOSTILE, state, 3, 4, HOSTILE), message=HOSTILE) for state in ("new", "unknown")],
    )  # fmt: skip


def test_names_cannot_command_the_terminal():
    text = render_comparison(hostile())
    assert "\x1b" not in text and not re.search(r"^# ::error::", text, re.MULTILINE)
    assert [line for line in text.splitlines() if len(line) > WIDTH and "script" not in line] == []


def test_names_are_only_text_in_markdown():
    text = render_comparison_markdown(hostile(), title=HOSTILE)
    assert "<img" not in text and "</script" not in text
    # nothing is looked for inside code
    rest = re.sub(r"<code>[^<]*</code>|</?(?:details|summary|sub)>", "", text)
    assert not set("<\x1b`") & set(rest) and "@everyone" not in rest and " #12" not in rest
    assert not [line for line in text.splitlines() if line.startswith("::")]
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in tables} == {5, 6}  # the sides, and the changes


def test_markdown_says_the_same():
    text = render_comparison_markdown(comparison(), title="Run 12")
    blocks = text.split("\n\n")
    assert blocks[:2] == ["### Run 12", f"🟢 **{comparison().headline}**"]
    assert "| idle: input | 8 ms | - | -8 ms | gone |" in text
    assert "| **a step** | **18.4 ms** | **12.1 ms** | **-6.3 ms** | **-34% (-35% to -34%)** |" in text
    assert "- **fixed** The GPU waits for the data loader (INP001): 8 ms before, now none." in text
    assert "| <code>fused&#95;add&#95;mul</code> | - | 400 us | +400 us | new |" in text.replace(
        "fused_add_mul", "fused&#95;add&#95;mul"
    )
    assert text.count("<details>") == text.count("</details>") == 4 and text.endswith("</sub>\n")
    assert "<summary>Other findings (3)</summary>" in text and "- 1 that did not change" in text
    still = [one for one in comparison().problems if one.state == "same"]
    assert "\n1 finding did not change.\n" in render_comparison_markdown(comparison(problems=still))


def test_captures_of_one_side_that_do_not_belong_together_are_told_what_to_do():
    notes = [*notes_on([capture(), capture(gpus=["NVIDIA A100"])], [capture()], anyway=False)]
    assert [(note.about, note.refuses) for note in notes] == [("captures", True)]
    assert "one ran on NVIDIA H100 80GB HBM3, another on NVIDIA A100" in notes[0].message
    assert "one program on one machine" in advice(refused(notes=notes))[0]


def test_a_refusal_in_markdown():
    text = render_comparison_markdown(refused())
    assert text.startswith(
        "⚠️ **Could not judge: base ran on an NVIDIA H100, new on an NVIDIA A100.**\n\nRecord both on the same model"
    )
    assert "- **refused** GPU: base ran on" in text and "Where the time went" not in text


def test_markdown_fits_a_comment():
    names = [f"kernel_{n}_" + "<é>" * 200 for n in range(500)]
    huge = [change(name, 1 * MS, 2 * MS + n * US) for n, name in enumerate(names)]
    problems = [replace(problem(f"XXX{n:03}", "x" * 300, "new", None, 5), message="y" * 900) for n in range(200)]
    made = comparison(kernels=huge, operators=huge, families=huge, collectives=huge, problems=problems)
    text = render_comparison_markdown(made)
    assert len(text.encode()) <= LIMIT and text.count("<details>") == text.count("</details>")
    assert text.startswith("🟢 ") and "more sections are in the comparison" in text


def test_what_tells_of_a_person_can_be_taken_out():
    telling = comparison(
        base=side("/home/ada/secret/run.json", 18_400 * US, headline="ada@host waits in /home/ada/x/train.py")
    )
    text = render_comparison_markdown(redaction_of().comparison(telling))
    assert "ada" not in text and "run.json" in text


@pytest.mark.parametrize(
    ("made", "fail_on_new", "code", "words"),
    [
        (comparison(), None, 0, ""),
        (comparison(), "high", 0, ""),
        (comparison(), "medium", 1, "new finding LCH001 (medium)"),
        (comparison(outcome="slower", step=change("step", 10 * MS, 12 * MS)), None, 1, "+20% a step, and --fail-over allows +5.0%"),
        (comparison(outcome="slower", step=change("step", 100 * MS, 104 * MS)), None, 0, ""),
        (comparison(outcome="no_change", step=change("step", 100 * MS, 104 * MS, "same")), None, 0, ""),
        (comparison(outcome="no_change", step=change("step", 10 * MS, 12 * MS, "same")), None, 3, "so much noise"),
        (refused(), "info", 3, ""),
    ],
)  # fmt: skip
def test_the_gate(made, fail_on_new, code, words):
    passed = gate(made, 0.05, fail_on_new)
    assert passed.exit_code == code and words in "; ".join(passed.reasons)


def test_damage_passes_no_gate_unless_something_worse_was_found():
    note = Note("damage", "NEW is damaged: it was cut short")
    assert gate(comparison(notes=[note]), 0.05).exit_code == 3
    assert gate(comparison(notes=[note]), 0.05).reasons == ["NEW is damaged: it was cut short"]
    slower = comparison(notes=[note], outcome="slower", step=change("step", 10 * MS, 12 * MS))
    assert gate(slower, 0.05).exit_code == 1


def test_a_finding_that_only_got_worse_fails_where_it_crosses_the_line():
    worse = replace(problem("INP001", "Waits", "worse", 5, 9), base_severity="low", new_severity="high")
    assert gate(comparison(problems=[worse]), 0.05, "medium").exit_code == 1
    assert gate(comparison(problems=[replace(worse, base_severity="medium")]), 0.05, "medium").exit_code == 0
