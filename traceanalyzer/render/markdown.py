"""The result as GitHub-flavoured Markdown, for a step summary or a comment: the point first, the rest folded away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from traceanalyzer.render.critical_path import path_block
from traceanalyzer.render.findings import alike, gain, group_by_rule, proofs, silent_rules
from traceanalyzer.render.ledgers import Gpus, gpus_of, ledgers_side_by_side, spread_rows
from traceanalyzer.render.md import LEFT, LIMIT, RIGHT, clip_blocks, code, details, marked, table, text
from traceanalyzer.render.sections import section_blocks
from traceanalyzer.result.document import Finding, Result, Steps
from traceanalyzer.result.gpus import parted_lines
from traceanalyzer.result.ranks import notes, rank_list
from traceanalyzer.result.sections import Section
from traceanalyzer.result.settings import settings_sentence
from traceanalyzer.result.words.gain import is_of_all
from traceanalyzer.result.words.gpu_names import device_name
from traceanalyzer.result.words.job import absent, late_sentence, replayed, shape, summary, waiting, worth_naming
from traceanalyzer.result.words.unprofiled import steps_without_profiler
from traceanalyzer.units import format_count, format_duration, format_share
from traceanalyzer.vocabulary.lines import line_words
from traceanalyzer.vocabulary.losses import bound_by_words

MOST_NOTES, MOST_ADVICE, MOST_PROOF, MOST_RULES = 6, 8, 3, 40
"""Of each kind so many are shown, and how many more there are."""
BESIDE = 8
"""GPUs with a column of their own; of more the spread is shown."""
BAR = 25
LATE = 3
MOST_EVIDENCE = 4


def render_markdown(result: Result, sections: Sequence[Section] = (), limit: int = LIMIT) -> str:
    """Headline, health, ledger, findings, job, critical path, other evidence and the rules that could not judge, in at most `limit`
    bytes of UTF-8."""
    blocks = [
        f"### {text(result.verdict.headline)}",
        _about(result),
        *_settings(result),
        *_health(result),
        *_ledger(gpus_of(result), result),
    ]
    groups = group_by_rule(result.findings)
    # Of a trace that cannot be judged the findings say what to record next time.
    paying = [group for group in groups if not result.judged or any(finding.saving.pays for finding in group)]
    if paying:
        blocks.append("#### What to change" if result.judged else "#### What to do")
        blocks += ["\n\n".join(_finding(number, group, is_of_all(result))) for number, group in enumerate(paying, 1)]
    elif result.devices:
        blocks.append("No finding that gives anything.")
    others = _others([group for group in groups if group not in paying])
    return clip_blocks(
        [*blocks, *_job(result), *path_block(result), *others, *section_blocks(sections), *_rules(result)], limit
    )


def _about(result: Result) -> str:
    first, left = result.inputs[:1], len(result.inputs) - 1
    what = [f"{code(one.path)} ({text(one.producer)})" for one in first]
    what += [f"and {format_count(left)} more files"] if left > 0 else []
    beside = result.evidence[:MOST_EVIDENCE]
    about = [f"{code(one.path)} ({text(one.kind.replace('_', ' '))})" for one in beside]
    about += [f"and {format_count(more)} more"] if (more := len(result.evidence) - len(beside)) else []
    tool = " ".join(filter(None, (result.tool.get("name"), result.tool.get("version"))))
    bound = [f"bound by **{text(bound_by_words(result.verdict.bound_by))}**"] if result.devices else []
    return " · ".join(filter(None, [*bound, " ".join(what), ", ".join(about), text(tool)]))


def _settings(result: Result) -> list[str]:
    said = settings_sentence(result.settings)
    return [f"{text(said)}."] if said else []


def _health(result: Result) -> list[str]:
    said = [
        f"- **{text(note.code)}** {text(note.message)}{f' ({format_count(note.count)}×)' if note.count > 1 else ''}"
        f"{f' [ranks {rank_list(note.ranks)}]' if note.ranks else ''} · {text(note.severity)}"
        for note in notes(result.health)
    ]
    return ["\n".join(["**Health of the trace**", "", *_cut(said, MOST_NOTES)])] if said else []


def _cut(items: Sequence[str], most: int, bullet: str = "- ") -> list[str]:
    """The first of some list items, and how many more there are."""
    left = len(items) - most
    return [*items[:most], *([f"{bullet}and {format_count(left)} more"] if left > 0 else [])]


def _ledger(gpus: Gpus, result: Result) -> list[str]:
    if not gpus:
        return []
    if len(gpus) == 1:
        return [_one_gpu(result), *_steps(gpus[0][1])]
    if len(gpus) <= BESIDE:
        (corner, names), *rows = ledgers_side_by_side(result, gpus)
        return [table([corner, *names], [[text(label), *cells] for label, cells in rows], _right(len(names)))]
    (corner, ends, names), *spread = spread_rows(result, gpus)
    head = f"{format_count(len(gpus))} GPUs, and those that differ most:"
    rows = [(label, [*low_to_high, *cells]) for label, low_to_high, cells in spread]
    headers = [corner, *ends, *names]
    return [
        head,
        table(headers, [[text(label), *map(text, cells)] for label, cells in rows], _right(len(headers) - 1)),
    ]


def _right(columns: int) -> list[str]:
    return [LEFT, *[RIGHT] * columns]


def _one_gpu(result: Result) -> str:
    device = result.devices[0]
    name = device_name(device) + (f" ({device.name})" if device.name else "")
    rows = []
    for line, ns in parted_lines(device).items():
        if ns:
            share = ns / device.window_ns if device.window_ns else 0
            rows.append([text(line_words(line)), format_duration(ns), format_share(share), "█" * round(share * BAR)])
    rows.append(["**window**", f"**{format_duration(device.window_ns)}**", "", ""])
    return table([text(name), "time", "share", ""], rows, [LEFT, RIGHT, RIGHT, LEFT])


def _steps(steps: Steps | None) -> list[str]:
    if steps is None:
        return []
    count = f"{format_count(steps.count)} step{'s' if steps.count != 1 else ''}"
    times = f"median {format_duration(steps.median_ns)}, 95th percentile {format_duration(steps.p95_ns)}"
    without = steps_without_profiler(steps, format_duration)
    return [f"{count}: {times}; {without}" if without else f"{count}: {times}"]


def _finding(number: int, group: list[Finding], everywhere: bool) -> list[str]:
    """A finding that gives something: what, why and the first advice; the rest is folded away."""
    first = group[0]
    advice, more = _advice(group), []
    if len(advice) > 1:
        more.append("\n".join(_cut([f"- {one}" for one in advice[1:]], MOST_ADVICE)))
    if first.evidence:
        shown = [f"- {text(one)}" for one in proofs(first.evidence)]
        more.append("\n".join(["Where it shows:", "", *_cut(shown, MOST_PROOF)]))
    lines = [f"**{number}. {text(first.title)}** · {code(first.rule)} · {text(first.severity)}"]
    lines += [text(gain(first, everywhere))] if first.saving.recoverable_ns else []
    lines.append(text(first.message))
    if len(group) > 1:
        lines.append(f"The same on {text(alike(group[1:]))}.")
    if advice:
        lines.append(f"➜ {advice[0]}")
    return [*lines, details("More advice, and where it shows", *more)] if more else lines


def _advice(group: list[Finding]) -> list[str]:
    said = (
        f"{text(framework)}: {marked(words)}"
        for one in group
        for entry in one.recommend
        for framework, words in entry.items()
    )
    return list(dict.fromkeys(said))


def _others(groups: list[list[Finding]]) -> list[str]:
    """The findings that give nothing by themselves, one line each."""
    if not groups:
        return []
    said = [f"- {code(group[0].rule)} {text(group[0].title)}: {text(group[0].message)}" for group in groups]
    findings, give = ("finding", "gives") if len(said) == 1 else ("findings", "give")
    what = f"{format_count(len(said))} more {findings}, which alone {give} nothing"
    return [details(what, "\n".join(_cut(said, MOST_RULES)))]


def _job(result: Result) -> list[str]:
    if result.job is None:
        return []
    sentences = [*(one.sentence for one in absent(result, result.job)), waiting(result, result.job)]
    late = worth_naming(result)
    lines = [f"- {text(sentence)}" for sentence in sentences if sentence]
    lines += _cut([f"- {text(late_sentence(result, one))}" for one in late], LATE)
    played = replayed(result, result.job)
    lines += [f"- {text(played)}"] if played else []
    lines += [f"- {text(sentence)}" for sentence in shape(result, result.job)]
    return [
        "\n".join([f"#### Job\n\n{text('; '.join(summary(result, result.job)))}", *(["", *lines] if lines else [])])
    ]


def _rules(result: Result) -> list[str]:
    counts = Counter(rule.outcome for rule in result.rules)
    if not counts:
        return []
    said = ", ".join(f"{count} {text(outcome.replace('_', ' '))}" for outcome, count in sorted(counts.items()))
    silent = [
        f"- {', '.join(map(code, rules))} {outcome}: {text(reason)}"
        for rules, outcome, reason in silent_rules(result.rules)
    ]
    return [details(f"Rules: {said}", "\n".join(_cut(silent, MOST_RULES)))] if silent else [f"Rules: {said}"]
