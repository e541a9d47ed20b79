"""What Nsight Systems says of its own recording, in its own words.

Its severities say little: that it does not know the driver is a warning, that buffers never came back is information, and some warnings
stand in nearly every file. So the words decide what a diagnostic means for the rules.
"""

from __future__ import annotations

import re

from traceanalyzer.ingest.contract import Sink
from traceanalyzer.ingest.formats.nsys.sqlite import selects, tables
from traceanalyzer.ingest.formats.nsys.sqlite.database import Database
from traceanalyzer.records import dataclass
from traceanalyzer.vocabulary.health import PROFILER_ERRORS
from traceanalyzer.vocabulary.levels import INFO, LOW, MEDIUM

WARNING = 2
_LONGEST = 200
_MOST = 4
_MOST_TEXTS = 1 << 12
# Records are gone, as far as it knows; "might" and "may" say that it does not.
_LOST = re.compile(
    r"\b(?:dropp(?:ed|ing)|lost|losing|overflow\w*|discard\w*|exhausted|incomplete)\b|buffers?: *(\d+) of (\d+)", re.I
)
_NONE_LOST = re.compile(r"\b(?:no|0|zero)\b[^.]*\b(?:dropped|lost|discarded)", re.I)
_MAYBE_LOST = re.compile(r"not (?:all|every)\b|missing|missed", re.I)
_TROUBLE = re.compile(
    r"not support|unsupported|not (?:been )?(?:start|load|find|found|available|enabled|permitted)|fail|error|unable|can ?not|could not|"
    r"denied|disabled|ignored|legacy|no cuda events",
    re.I,
)
_OF_THE_GPU = re.compile(r"\bcuda\b|\bcupti\b|driver|\bgpu\b|device|unified memory", re.I)
# Other libraries than CUDA, and what is sampled or scheduled beside it.
_OF_OTHERS = re.compile(
    r"cudnn|cublas|nvtx|opengl|vulkan|\bmpi\b|gpu metrics|sampl|scheduling|context switch|ftrace|\betw\b|os runtime|"
    r"cudaprofiler(?:start|stop) api",
    re.I,
)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Diagnostic:
    """One thing that was said: how grave Nsight Systems takes it (0 to 3), its first wording, and how often."""

    severity: int
    text: str
    count: int

    @property
    def lost(self) -> bool:
        """Whether records are gone that the ledger or its causes rest on."""
        found = _LOST.search(self.text)
        if found is None or _NONE_LOST.search(self.text) or _OF_OTHERS.search(self.text):
            return False
        return found[1] is None or int(found[1][:9]) < int(found[2][:9])

    @property
    def doubts_gpu(self) -> bool:
        """Whether it may be why work of the GPU is missing."""
        amiss = self.lost or _MAYBE_LOST.search(self.text) or _TROUBLE.search(self.text)
        return bool(amiss and _OF_THE_GPU.search(self.text) and not _OF_OTHERS.search(self.text))

    @property
    def quoted(self) -> str:
        """Its words, shortened, in quotation marks."""
        text = " ".join(self.text.split())
        if len(text) > _LONGEST:
            # Whole sentences where the first fits.
            text = (text[: text.rfind(". ", 0, _LONGEST) + 1] or text[:_LONGEST].rsplit(" ", 1)[0]) + " ..."
        return f'"{text}"'


def read_diagnostics(database: Database) -> list[Diagnostic]:
    """All that is more than routine, those that differ in numbers only as one, the gravest first."""
    sql = selects.select(database, tables.DIAGNOSTICS, "text <> ''")
    counted = f"select severity, text, count(*) as count from ({sql}) group by 1, 2 order by 1 desc, 3 desc, 2"
    found = database.table(f"{counted} limit {_MOST_TEXTS}") if sql else None
    said: dict[str, Diagnostic] = {}
    for row in found.to_pylist() if found else []:
        one = Diagnostic(row["severity"] or 0, row["text"], row["count"])
        if one.severity >= WARNING or one.lost or one.doubts_gpu:
            key = _NUMBER.sub("#", one.text)
            first = said.get(key, Diagnostic(one.severity, one.text, 0))
            said[key] = Diagnostic(first.severity, first.text, first.count + one.count)
    return sorted(said.values(), key=lambda one: (not one.lost, not one.doubts_gpu, -one.severity))


def report_diagnostics(diagnostics: list[Diagnostic], sink: Sink) -> None:
    """What was lost makes rules less certain; the rest is passed on, what is about the GPU for itself and all else together."""
    for one in [one for one in diagnostics if one.lost]:
        message = f"Nsight Systems says that records were lost, so idle time and counts may be wrong: {one.quoted}"
        sink.health(PROFILER_ERRORS, MEDIUM if one.severity >= WARNING else LOW, message, one.count, one.text)
    rest = [one for one in diagnostics if not one.lost]
    about_gpu = [one for one in rest if one.doubts_gpu][:_MOST]
    for one in about_gpu:
        what = "warns" if one.severity >= WARNING else "notes"
        sink.health(PROFILER_ERRORS, INFO, f"Nsight Systems {what}: {one.quoted}", one.count, one.text)
    others = [one for one in rest if one not in about_gpu]
    if others:
        more = f" and {len(others) - 1} more of this kind" if len(others) > 1 else ""
        message = f"Nsight Systems also warns: {others[0].quoted}{more}"
        sink.health(PROFILER_ERRORS, INFO, message, sum(one.count for one in others), others[0].text)


def doubting(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """What may be why no work of the GPU was recorded: the most telling that was said, two at most."""
    told = [one for one in diagnostics if one.doubts_gpu]
    # That not all may have been collected stands in nearly every file, and does not say why.
    sharp = [one for one in told if not _MAYBE_LOST.match(one.text) and "no cuda events" not in one.text.lower()]
    return sorted(sharp or told, key=lambda one: "driver" not in one.text.lower())[:2]
