"""Reports of the flops profiler: the summary, and the tree of modules with what each took."""

from __future__ import annotations

import re
from dataclasses import field

from traceanalyzer.evidence.deepspeed_log.reading.lines import Prefix
from traceanalyzer.evidence.deepspeed_log.reading.quantities import NUMBER, ns_of, quantity, seconds, whole
from traceanalyzer.records import dataclass

HEADER = "DeepSpeed Flops Profiler"
_HEADER = re.compile(r"(?<!-)-{10,200} DeepSpeed Flops Profiler -{10,200}\s{0,200}$")
_AT = re.compile(r"Profile Summary at step (\d{1,12}):")
_PASSES = re.compile(rf"^flops per gpu = ({NUMBER}) \* fwd flops per gpu / iter latency$")
_FIELD = re.compile(r"\s*([A-Za-z][^:]{2,90}?):\s+(\S[^\n]*?)\s*")
_END = re.compile(r"-{60,}\s*$")
_AGGREGATED, _DETAILED = "Aggregated Profile", "Detailed Profile"
_CHILD = re.compile(r"\(([^()]{1,200})\): (?:(\d{1,7}) x )?([A-Za-z_][\w.\[\]]{0,200})\((.*)$")
_ROOT = re.compile(r"([A-Za-z_][\w.\[\]]{0,200})\((.*)$")
_FIGURES = re.compile(
    rf"({NUMBER}[ \w]{{0,3}}?)(?: = |, ){NUMBER}% Params, ({NUMBER}\s*\w{{0,2}}MACs)(?: = |, ){NUMBER}% MACs, "
    rf"({NUMBER}\s*\w{{0,3}})(?: = |, ){NUMBER}% (?:latency|time), ({NUMBER}\s*\w{{0,2}}FLOPS)(?:, ?(.*))?$"
)
_NAMES = {
    "world size": "world_size",
    "data parallel size": "data_parallel",
    "model parallel size": "model_parallel",
    "model paralel size": "model_parallel",
    "batch size per gpu": "batch",
    "params per gpu": "params",
    "fwd macs per gpu": "macs",
    "fwd flops per gpu": "flops",
    "fwd latency": "fwd",
    "bwd latency": "bwd",
    "step latency": "step",
    "iter latency": "iteration",
    "samples/second": "samples_per_second",
}
_COUNTED = ("world_size", "data_parallel", "model_parallel", "batch", "params", "macs")
_TIMED = ("fwd", "bwd", "step", "iteration")
LONGEST_FIELD = 400
"""Characters of a line of the summary."""
MOST_MODULES = 1_000_000
DEEPEST = 500
PATIENCE = 20_000
"""Lines without anything of a report after which it is over, though its end was not seen."""


@dataclass
class Module:
    """A line of the tree; its figures where the profiler printed any."""

    parent: int | None
    depth: int
    name: str
    path: str
    kind: str
    repeat: int
    params: int | None = None
    macs: int | None = None
    seconds: float | None = None
    rate: float | None = None
    shape: str | None = None

    @property
    def latency(self) -> int | None:
        return None if self.seconds is None else ns_of(self.seconds, 1e9)


@dataclass
class Report:
    """One report: `values` by the names of the columns of `deepspeed_profiles`."""

    values: dict[str, int | float | None] = field(default_factory=dict)
    modules: list[Module] = field(default_factory=list)
    ended: bool = False


class Profiles:
    """The reports of one file."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.unread = self.modules = 0
        self._prefix = Prefix("")
        self._left = 0
        self._part = ""
        self._open: list[int] = []

    @property
    def inside(self) -> bool:
        """Whether a report is open."""
        return self._left > 0

    def begins(self, line: str) -> bool:
        """Whether the line is the head of a report, which is then open."""
        found = _HEADER.search(line)
        if found is None:
            return False
        self.reports.append(Report())
        self._prefix, self._left, self._part, self._open = Prefix(line[: found.start()]), PATIENCE, "", []
        return True

    def read(self, line: str) -> None:
        """Take a line after the head of a report, its own or somebody else's."""
        own = self._prefix.without(line)
        self._left -= 1
        if own is None:
            return
        stripped = own.strip()
        if stripped.startswith("---"):
            if _END.fullmatch(stripped):
                self._left, self.reports[-1].ended = 0, True
            self._part = next((part for part in (_AGGREGATED, _DETAILED) if part in own), self._part)
        elif self._part == _DETAILED:
            self._tree(stripped)
        elif not self._part and len(own) <= LONGEST_FIELD:
            self._summary(own)

    def _summary(self, line: str) -> None:
        values = self.reports[-1].values
        if found := _AT.search(line):
            values["profile_step"] = int(found[1])
        elif found := _FIELD.fullmatch(line):
            label, text = found[1].strip().lower(), found[2]
            if passes := _PASSES.match(label):
                values["passes"], values["rate"] = quantity(passes[1]), quantity(text)
            elif label.startswith("fwd flops per gpu = fwd flops"):
                values["fwd_rate"] = quantity(text)
            # Versions before 0.6 name the formula: "fwd flops per GPU = 2 * fwd MACs per GPU".
            elif name := _NAMES.get("fwd flops per gpu" if label.startswith("fwd flops per gpu = 2 *") else label):
                value = _value(name, text)
                values[name] = value
                if value is None:
                    self.unread += 1
                else:
                    self._left = PATIENCE

    def _tree(self, line: str) -> None:
        """A line of what PyTorch prints of a module: a child with what is in its brackets, the end of one, or what is inside."""
        modules = self.reports[-1].modules
        if line == ")":
            self._open = self._open[:-1]
        elif (found := _CHILD.fullmatch(line)) and self._open:
            self._module(self._open[-1], found[1], found[3], int(found[2] or 1), found[4])
        elif (found := _ROOT.fullmatch(line)) and not modules:
            self._module(None, found[1], found[1], 1, found[2])
        elif self._open:
            self._figures(modules[self._open[-1]], line)

    def _module(self, parent: int | None, name: str, kind: str, repeat: int, inside: str) -> None:
        modules = self.reports[-1].modules
        if len(self._open) >= DEEPEST or self.modules >= MOST_MODULES:
            self.unread += 1
            return
        depth = 0 if parent is None else modules[parent].depth + 1
        path = "" if parent is None else ".".join(filter(None, (modules[parent].path, name)))
        modules.append(Module(parent, depth, name, path, kind, repeat))
        self.modules += 1
        self._left = PATIENCE
        # Nothing is inside: its brackets are closed on the same line.
        if inside.endswith(")") and f"({inside}".count("(") <= inside.count(")"):
            self._figures(modules[-1], inside[:-1])
        else:
            self._open.append(len(modules) - 1)
            self._figures(modules[-1], inside)

    def _figures(self, module: Module, text: str) -> None:
        found = _FIGURES.fullmatch(text)
        if found is None:
            return
        module.params, module.macs = whole(found[1]), whole(found[2])
        module.seconds, module.rate = quantity(found[3]), quantity(found[4])
        module.shape = (found[5] or "").strip(" ,") or None
        if module.params is None or module.macs is None or (module.seconds or 0.0) < 0:
            self.unread += 1


def _value(name: str, text: str) -> int | float | None:
    if name in _COUNTED:
        return whole(text)
    return seconds(text) if name in _TIMED else quantity(text)
