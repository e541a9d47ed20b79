"""What a log tells of DeepSpeed's configuration and version: the dump of it, its JSON, and what DeepSpeed says as it starts."""

from __future__ import annotations

import re
from collections.abc import Iterator

_DOTTED = re.compile(r"\s(\w{3,60}) \.{2,40} (.{1,4000})$")
_VERSION = re.compile(r"DeepSpeed info: version=([\w.+-]{1,40})")
_PIPELINE = re.compile(r"CONFIG: micro_batches=(\d{1,9}) micro_batch_size=(\d{1,9})")
_CREATING = re.compile(r"Creating \S{1,40} ZeRO stage (\d) optimizer")
_STAGE = re.compile(r"(?:<?ZeroStageEnum\.)?(\w+)")
_IN_CONFIG = re.compile(r"[\"' ]stage[\"']?\s*[=:]\s*(?:<ZeroStageEnum\.\w+: )?(\d)")
_JSON = re.compile(r'"(\w{3,60})"\s*:\s*([\w.+-]{1,40})')
_NAMES = {"disabled": "0", "optimizer_states": "1", "gradients": "2", "weights": "3"}
_PLAIN = frozenset(
    {
        *(
            "train_batch_size",
            "train_micro_batch_size_per_gpu",
            "gradient_accumulation_steps",
            "world_size",
            "steps_per_print",
        ),
        *("wall_clock_breakdown", "comms_logger_enabled", "zero_enabled"),
    }
)
_TABLES = {"flops_profiler_config": "flops_profiler_enabled", "comms_config": "comms_logger_enabled"}
_ENABLED = re.compile(r"enabled[\"']?\s*[=:]\s*(\w+)")
STAGE = "zero_optimization_stage"
WITHIN = 40
"""Lines of a dumped JSON in which the stage follows the name of its object."""


class Settings:
    """Settings by name; the last word counts."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._left = 0

    def read(self, line: str) -> None:
        """Take what a line tells."""
        for name, value in self._told(line):
            self.values[name] = value

    def _told(self, line: str) -> Iterator[tuple[str, str]]:
        if found := _PIPELINE.search(line):
            yield "gradient_accumulation_steps", found[1]
            yield "train_micro_batch_size_per_gpu", found[2]
        elif found := _VERSION.search(line):
            yield "version", found[1]
        elif found := _CREATING.search(line):
            yield STAGE, found[1]
        elif found := _DOTTED.search(line):
            yield from _dotted(found[1], found[2].strip())
        elif '"' in line:
            yield from self._json(line)

    def _json(self, line: str) -> Iterator[tuple[str, str]]:
        self._left = max(self._left - 1, 0)
        if '"zero_optimization"' in line:
            self._left = WITHIN
        for found in _JSON.finditer(line):
            if found[1] == "stage" and self._left and found[2].isdigit():
                self._left = 0
                yield STAGE, found[2]
            elif found[1] in _PLAIN:
                yield found[1], found[2]


def _dotted(name: str, value: str) -> Iterator[tuple[str, str]]:
    """A line of the dump: the name, dots, the value as Python prints it."""
    if name == STAGE and (found := _STAGE.match(value)):
        yield STAGE, _NAMES.get(found[1], found[1])
    elif name == "zero_config" and (found := _IN_CONFIG.search(f" {value}")):
        yield STAGE, found[1]
    elif name in _TABLES and (found := _ENABLED.search(value)):
        yield _TABLES[name], found[1]
    elif name in _PLAIN and len(value) <= WITHIN:
        yield name, value
