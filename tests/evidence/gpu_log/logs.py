"""Made-up logs of GPUs in every way that they are written, and what is read of one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.places import FIXTURES
from traceanalyzer.evidence.contract import Marks
from traceanalyzer.evidence.gpu_log import KIND
from traceanalyzer.ingest.bytes.source import source_of

LOGS = FIXTURES / "evidence" / "gpu_log"
START_S = 1_795_881_600
Row = dict[str, Any]
NAMES = {
    "time": "timestamp",
    "gpu": "index",
    "uuid": "uuid",
    "util": "utilization.gpu [%]",
    "sm": "clocks.current.sm [MHz]",
    "max": "clocks.max.sm [MHz]",
    "power": "power.draw [W]",
    "limit": "enforced.power.limit [W]",
    "temp": "temperature.gpu",
    "used": "memory.used [MiB]",
    "total": "memory.total [MiB]",
    "reasons": "clocks_event_reasons.active",
    "gen": "pcie.link.gen.current",
    "gen_max": "pcie.link.gen.max",
    "width": "pcie.link.width.current",
    "width_max": "pcie.link.width.max",
}
UNITS = {"util": " %", "sm": " MHz", "max": " MHz", "power": " W", "limit": " W", "used": " MiB", "total": " MiB"}
ALL = tuple(name for name in NAMES if name != "uuid")


class Kept:
    """As `ingest.contract.Sink`."""

    def __init__(self) -> None:
        self.batches: list[pa.Table] = []
        self.notes: list[tuple[str, str, str, int]] = []

    def add(self, table: str, batch: pa.Table | pa.RecordBatch) -> None:
        assert table == "gpu_log_samples"
        self.batches.append(batch)

    def candidates(self, batch: pa.Table) -> None:
        raise AssertionError

    def health(self, code: str, severity: str, message: str, count: int = 1, example: str | None = None) -> None:
        self.notes.append((code, severity, message, count))

    def rows(self) -> list[Row]:
        return [row for batch in self.batches for row in batch.to_pylist()]

    def said(self, words: str) -> bool:
        return any(words in message for _, _, message, _ in self.notes)


def read(path: Path) -> tuple[Kept, Marks]:
    sink, source = Kept(), source_of(path, path, None)
    assert KIND.sniff(source)
    marks = KIND.read(source, sink, lambda size: None)
    types = {field.name: field.type for field in KIND.tables[0].schema}
    for batch in sink.batches:
        batch.validate(full=True)
        for field in batch.schema:
            ours = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            wanted = types[field.name]
            assert ours == (wanted.value_type if pa.types.is_dictionary(wanted) else wanted), field.name
    return sink, marks


def rows(
    count: int = 200, gpus: int = 1, step_s: float = 0.1, start_s: float = START_S, **under_load: Any
) -> list[Row]:
    """Samples of GPUs that are under load in the middle eight tenths; `under_load` are values then, which may depend on the GPU."""
    found = []
    for number in range(count):
        for gpu in range(gpus):
            load = count // 10 <= number < count - count // 10
            row: Row = {
                "time": start_s + number * step_s,
                "gpu": gpu,
                "uuid": f"GPU-0000000{gpu}-aaaa-bbbb-cccc-dddddddddddd",
                "util": 98 if load else 0,
                "sm": 1_900 if load else 345,
                "max": 1_980,
                "power": 650.25 if load else 75.5,
                "limit": 700.0,
                "temp": 60,
                "used": 40_000,
                "total": 81_559,
                "reasons": 0 if load else 1,
                "gen": 5 if load else 1,
                "gen_max": 5,
                "width": 16,
                "width_max": 16,
            }
            if load:
                row |= {name: value(gpu) if callable(value) else value for name, value in under_load.items()}
            found.append(row)
    return found


def smi(
    samples: Sequence[Row],
    columns: Sequence[str] = ALL,
    parted: str = ", ",
    units: bool = True,
    comma: bool = False,
    ahead_s: int = 0,
    names: dict[str, str] | None = None,
) -> str:
    """As nvidia-smi writes them, with its clock `ahead_s` of UTC."""
    called = NAMES | (names or {})
    lines = [parted.join(called[name] if units else called[name].split(" [")[0] for name in columns)]
    for row in samples:
        values = [_written(name, row[name], ahead_s) for name in columns]
        if comma:
            values = [value.replace(".", ",") for value in values]
        lines.append(
            parted.join(
                value + (UNITS.get(name, "") if units else "") for name, value in zip(columns, values, strict=True)
            )
        )
    return "\n".join(lines) + "\n"


def _written(name: str, value: Any, ahead_s: int) -> str:
    if name == "time":
        return datetime.fromtimestamp(value + ahead_s + 1e-6, UTC).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
    if name == "reasons":
        return f"0x{value:016x}"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def dmon(count: int = 40, gpus: int = 1, options: str = "DT", step_s: int = 1) -> str:
    """As `nvidia-smi dmon` writes them, its header again each ten rows."""
    when = {"DT": "Date       Time        ", "T": "Time        ", "": ""}[options]
    what = {"DT": "YYYYMMDD   HH:MM:SS    ", "T": "HH:MM:SS    ", "": ""}[options]
    head = (
        f"#{when}gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk  pviol  tviol\n"
        f"#{what}Idx      W      C      C      %      %    MHz    MHz      %   bool\n"
    )
    lines = []
    for number in range(count):
        lines += [head] if number % 10 == 0 else []
        now = datetime.fromtimestamp(START_S + number * step_s, UTC)
        stamp = {"DT": now.strftime("%Y%m%d %H:%M:%S "), "T": now.strftime("%H:%M:%S "), "": ""}[options]
        lines += [
            f"{stamp}{gpu:4}    690     60      -     99     40   2619   1500     98      0\n" for gpu in range(gpus)
        ]
    return "".join(lines)


DCGM = {"SM_CLOCK": "1395", "POWER_USAGE": "696.5", "GPU_UTIL": "99", "FB_USED": "40000", "FB_FREE": "41000"}


def dcgm(count: int = 40, gpus: int = 2, times: bool = True, comments: bool = True) -> str:
    """As DCGM's exporter gives them, scrape after scrape."""
    lines = []
    for number in range(count):
        for name, value in {**DCGM, "CLOCK_THROTTLE_REASONS": "4"}.items():
            lines += [f"# HELP DCGM_FI_DEV_{name} It.", f"# TYPE DCGM_FI_DEV_{name} gauge"] if comments else []
            for gpu in range(gpus):
                labels = (
                    f'gpu="{gpu}",UUID="GPU-{gpu}-x",device="nvidia{gpu}",modelName="NVIDIA H100",Hostname="n",pod=""'
                )
                lines.append(
                    f"DCGM_FI_DEV_{name}{{{labels}}} {value}" + (f" {(START_S + number) * 1000}" if times else "")
                )
    return "\n".join(lines) + "\n"


def write(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_text(text, encoding, newline="")
    return path
