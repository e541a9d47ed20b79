"""One colour and hatching per kind of time, alike on the ledger bar, in legends, on the timeline and in charts."""

from __future__ import annotations

from traceanalyzer.records import dataclass
from traceanalyzer.report.hatches import HATCHES, STRENGTH, Hatch
from traceanalyzer.vocabulary import lines, losses
from traceanalyzer.vocabulary.lines import Line, line_words


@dataclass(frozen=True)
class Swatch:
    """A kind of time: its key (a ledger line, or a kind of host event), words for it, its colour on light and dark paper, and the
    hatching over it: the name of one of HATCHES, or none. Of the lines of a ledger no two have the same."""

    key: str
    label: str
    meaning: str
    light: str
    dark: str
    hatch: str = ""

    @property
    def tile(self) -> Hatch | None:
        return HATCHES[self.hatch] if self.hatch else None

    @property
    def css(self) -> str:
        """The key as a CSS identifier: "idle.input" becomes "idle-input"."""
        return self.key.replace(".", "-").replace("_", "-")


def _line(line: Line, light: str, dark: str, hatch: str = "") -> Swatch:
    """The swatch of a ledger line, which has its words from the vocabulary."""
    words = line_words(line.name)
    return Swatch(line.name, words[:1].upper() + words[1:], line.meaning, light, dark, hatch)


SWATCHES: tuple[Swatch, ...] = (
    _line(lines.COMPUTE, "#306fba", "#71a8f1"),
    _line(
        lines.EXPOSED_COMMUNICATION,
        "#8f71e1",
        "#8d73d2",
        "dots",
    ),
    _line(lines.EXPOSED_TRANSFER, "#8f71e1", "#8d73d2", "dots"),
    _line(lines.EXPOSED_WAIT, "#beb1ff", "#3c56a4", "fine crossed"),
    _line(lines.EXPOSED_MEMCPY, "#53ccc4", "#2fa99f", "fine level"),
    _line(lines.EXPOSED_MEMSET, "#5f9884", "#8cbba9", "fine upright"),
    _line(lines.INPUT, "#df6e1e", "#e77c31", "rising"),
    _line(
        lines.MEMORY_MANAGEMENT,
        "#a5583f",
        "#b3664b",
        "grid",
    ),
    _line(
        lines.SYNCHRONIZATION,
        "#ca3b67",
        "#dc5d89",
        "crossed",
    ),
    _line(lines.MPI, "#503886", "#5c326e", "fine chequered"),
    _line(lines.OS, "#5cbc7a", "#62bc80", "fine grid"),
    _line(lines.HOST_WORK, "#e6ab22", "#e3b135", "falling"),
    _line(
        lines.HOST_UNTRACED,
        "#e0c171",
        "#b69b59",
        "fine falling",
    ),
    _line(
        lines.LAUNCH_LATENCY,
        "#b6b741",
        "#c2c352",
        "upright",
    ),
    _line(
        lines.DEPENDENCY,
        "#a182a9",
        "#bb9bc6",
        "level",
    ),
    _line(
        lines.QUEUED,
        "#6e2c50",
        "#862638",
        "diamonds",
    ),
    _line(
        lines.TURNAROUND,
        "#adc6e5",
        "#777777",
        "fine dots",
    ),
    _line(lines.PROFILER, "#a7a7a7", "#768ba7", "fine rising"),
    _line(lines.UNATTRIBUTED, "#6e7883", "#465363", "chequered"),
    Swatch("communication", "Communication", "a communication kernel was running", "#8f71e1", "#8d73d2", "dots"),
    Swatch(
        "communication_wait",
        "Waiting for other ranks",
        "a communication kernel was running, but another rank had not arrived yet",
        "#beb1ff",
        "#3c56a4",
        "fine crossed",
    ),
    Swatch("memcpy", "Copy", "a copy was running", "#53ccc4", "#2fa99f", "fine level"),
    Swatch("memset", "Memset", "a memset was running", "#5f9884", "#8cbba9", "fine upright"),
    Swatch("call.launch", "Launch call", "a call that starts work on the GPU", "#b6b741", "#c2c352", "upright"),
    Swatch("call.sync", "Synchronization call", "a call that can wait for the GPU", "#ca3b67", "#dc5d89", "crossed"),
    Swatch("call.copy", "Copy call", "a call that copies memory", "#53ccc4", "#2fa99f", "fine level"),
    Swatch("call.memory", "Memory call", "a call that allocates or frees memory", "#a5583f", "#b3664b", "grid"),
    Swatch("call.mpi", "MPI call", "a call of MPI", "#503886", "#5c326e", "fine chequered"),
    Swatch("call.os", "System call", "a call of the operating system", "#3eb062", "#7ada92", "fine grid"),
    Swatch("operator", "Operator", "an operator on the host", "#8cb3d9", "#5c7d9f"),
    Swatch("annotation", "Annotation", "a range that the program marked", "#99bd94", "#6a9065"),
    Swatch("python", "Python", "a Python frame", "#a293b6", "#65567c"),
    Swatch(
        "sample",
        "Sampled frame",
        "a function that samples of the CPU found on the stack",
        "#a293b6",
        "#65567c",
        "fine level",
    ),
    Swatch(
        "tree",
        "Whole",
        "a whole that is taken apart: a tree, a thread, or all that is too light to be shown",
        "#d3d9e0",
        "#3a434e",
    ),
    Swatch("api", "Other call", "another call of the GPU runtime", "#a4a4a4", "#5c636b"),
)

CODES: dict[str, int] = {swatch.key: code for code, swatch in enumerate(SWATCHES)}
BY_KEY: dict[str, Swatch] = {swatch.key: swatch for swatch in SWATCHES}

# The events' own words for what they are.
GPU_OP_KEYS = {"kernel": lines.COMPUTE.name, "graph": lines.COMPUTE.name, "memcpy": "memcpy", "memset": "memset"}
API_CLASS_KEYS = {"launch": "call.launch", "sync": "call.sync", "copy": "call.copy", "memory": "call.memory"}
RANGE_KEYS = {
    **{"operator": "operator", "annotation": "annotation", "nvtx": "annotation", "python": "python"},
    **{"openacc": "annotation", "openmp": "annotation", "callback": "operator", "mpi": "call.mpi", "os": "call.os"},
}
BOUND_BY_KEYS: dict[str, str] = {
    losses.BY_COMPUTE.name: lines.COMPUTE.name,
    losses.BY_IMBALANCE.name: lines.EXPOSED_WAIT.name,
}
"""By what bounds a run, the line that stands for it: the first of those that it is lost to."""
for _one in lines.LINES.values():
    if _one.loss and _one.loss.bound is not losses.UNKNOWN:
        BOUND_BY_KEYS.setdefault(_one.loss.bound_by, _one.name)


def kernel_key(kind: str | None) -> str:
    """The swatch of kernels of this class or family."""
    return lines.EXPOSED_COMMUNICATION.name if kind == "communication" else lines.COMPUTE.name


def luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb", 0 to 1, as WCAG defines it."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def ink_on(colour: str) -> str:
    """Black or white, whichever stands out more on the colour: always at least 4.5 to 1."""
    return "#000000" if (luminance(colour) + 0.05) ** 2 > 0.05 * 1.05 else "#ffffff"


def colour_rules() -> str:
    """The palette as CSS: custom properties and one class `.c-…` a swatch. `--swatch` is its colour, `--on` that of words and of its
    hatching on it, `--hatch` the tile of that as a mask."""
    light = "".join(f"--c-{s.css}:{s.light};--on-{s.css}:{ink_on(s.light)};" for s in SWATCHES)
    dark = "".join(f"--c-{s.css}:{s.dark};--on-{s.css}:{ink_on(s.dark)};" for s in SWATCHES)
    classes = "".join(_class(s) for s in SWATCHES)
    tiles = "".join(f"--hatch-{name.replace(' ', '-')}:{hatch.mask};" for name, hatch in HATCHES.items())
    return (
        f":root{{--hatch-strength:{STRENGTH};{tiles}{light}}}\n"
        f'@media screen and (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f'@media screen{{:root[data-theme="dark"]{{{dark}}}}}\n{classes}'
    )


def _class(s: Swatch) -> str:
    hatch = f"var(--hatch-{s.hatch.replace(' ', '-')})" if s.hatch else "initial"
    return f".c-{s.css}{{fill:var(--c-{s.css});--swatch:var(--c-{s.css});--on:var(--on-{s.css});--hatch:{hatch}}}\n"
