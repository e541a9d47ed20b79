"""One colour per kind of time, used alike by the ledger bar, the legend and the timeline. Declared once, here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Swatch:
    """A kind of time: its key (a ledger line, or a kind of host event), words for it, and its colour on light and dark paper."""

    key: str
    label: str
    meaning: str
    light: str
    dark: str

    @property
    def css(self) -> str:
        """The key as a CSS identifier: "idle.input" becomes "idle-input"."""
        return self.key.replace(".", "-").replace("_", "-")


SWATCHES: tuple[Swatch, ...] = (
    Swatch("compute", "Compute", "a compute kernel was running", "#3f7fcf", "#5b97e0"),
    Swatch("exposed_communication", "Exposed communication", "communication that no compute hid", "#7e5fc9", "#9b80e0"),
    Swatch("exposed_memcpy", "Exposed copies", "copies that nothing else hid", "#1b9c93", "#35b5ab"),
    Swatch("exposed_memset", "Exposed memsets", "memsets that nothing else hid", "#86bda9", "#7fae9d"),
    Swatch("idle.input", "Idle: input", "the launching thread waited for the data loader", "#e06f1f", "#ee8238"),
    Swatch(
        "idle.memory_management", "Idle: memory management", "memory was being allocated or freed", "#a5583f", "#c17458"
    ),
    Swatch("idle.synchronization", "Idle: synchronization", "the host had waited for the GPU", "#cf426c", "#e0608a"),
    Swatch("idle.host_work", "Idle: host work", "the launching thread was busy elsewhere", "#dba214", "#e0b03a"),
    Swatch(
        "idle.host_untraced",
        "Idle: host, untraced",
        "nothing was recorded on the launching thread",
        "#eacb7c",
        "#b59a58",
    ),
    Swatch(
        "idle.launch_latency",
        "Idle: launch latency",
        "from the launch call to the kernel's start",
        "#b0b02c",
        "#bdbd4a",
    ),
    Swatch(
        "idle.dependency", "Idle: dependency", "launched, but waiting for another stream or event", "#9d7fa5", "#a98cb2"
    ),
    Swatch("idle.turnaround", "Idle: turnaround", "the hardware's hand-over between operations", "#bfc5cd", "#6b7480"),
    Swatch("idle.profiler", "Idle: profiler", "the profiler's own overhead", "#97a0ab", "#8590a0"),
    Swatch("idle.unattributed", "Idle: unattributed", "no launch record says why", "#6f7985", "#4f5966"),
    Swatch("operator", "Operator", "an operator on the host", "#88a6c4", "#56728f"),
    Swatch("annotation", "Annotation", "a range that the program marked", "#93b58f", "#5d7f5a"),
    Swatch("python", "Python", "a Python frame", "#b6a5cc", "#6f5f87"),
    Swatch("api", "Other call", "another call of the GPU runtime", "#b4bac2", "#5d6672"),
)

CODES: dict[str, int] = {swatch.key: code for code, swatch in enumerate(SWATCHES)}
BY_KEY: dict[str, Swatch] = {swatch.key: swatch for swatch in SWATCHES}

# The events' own words for what the ledger calls by line.
GPU_OP_KEYS = {"kernel": "compute", "graph": "compute", "memcpy": "exposed_memcpy", "memset": "exposed_memset"}
API_CLASS_KEYS = {
    "launch": "idle.launch_latency",
    "sync": "idle.synchronization",
    "copy": "exposed_memcpy",
    "memory": "idle.memory_management",
}
RANGE_KEYS = {"operator": "operator", "annotation": "annotation", "nvtx": "annotation", "python": "python"}
BOUND_BY_KEYS = {
    "compute": "compute",
    "communication": "exposed_communication",
    "memcpy": "exposed_memcpy",
    "input": "idle.input",
    "host": "idle.host_work",
    "launch": "idle.launch_latency",
    "synchronization": "idle.synchronization",
    "memory_management": "idle.memory_management",
    "dependency": "idle.dependency",
}


def colour_rules() -> str:
    """The palette as CSS: one custom property and one class `.c-…` a swatch; dark values wait in `--dark-…`."""
    light = "".join(f"--c-{s.css}:{s.light};" for s in SWATCHES)
    dark = "".join(f"--c-{s.css}:{s.dark};" for s in SWATCHES)
    classes = "".join(f".c-{s.css}{{fill:var(--c-{s.css});--swatch:var(--c-{s.css})}}\n" for s in SWATCHES)
    return (
        f":root{{{light}}}\n"
        f'@media screen and (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f'@media screen{{:root[data-theme="dark"]{{{dark}}}}}\n{classes}'
    )
