"""How long large logs of GPUs take to read, in each way that they are written: 100 MB within 10 s and 1 GB."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import measure, ratio

BYTES = 100_000_000
START = 1_795_880_000
ANALYZE = (sys.executable, "-m", "traceanalyzer", "analyze")
DMON = "#gpu    pwr  gtemp     sm    mem   mclk   pclk\n#Idx      W      C      %      %    MHz    MHz\n"
DCGM = (
    ("SM_CLOCK", "1395"),
    ("GPU_TEMP", "55"),
    ("POWER_USAGE", "696.5"),
    ("GPU_UTIL", "99"),
    ("FB_USED", "40000"),
    ("FB_FREE", "40000"),
    ("CLOCKS_EVENT_REASONS", "4"),
)


def smi(number: int) -> str:
    """The n-th row of eight GPUs asked ten times a second."""
    tenths, gpu = divmod(number, 8)
    hours, minutes, seconds = tenths // 36_000 % 24, tenths // 600 % 60, tenths // 10 % 60
    day = f"2026/11/{1 + tenths // 864_000 % 28:02}"
    clock, power = 1_300 + 15 * (tenths % 40), 650 + tenths % 5_000 / 100
    return (
        f"{day} {hours:02}:{minutes:02}:{seconds:02}.{tenths % 10}00, {gpu}, {90 + tenths % 10} %, {40_000 + tenths % 97} MiB, "
        f"{power:.2f} W, {50 + tenths % 20}, {clock} MHz, 1980 MHz, 0x000000000000000{4 * (tenths % 2)}\n"
    )


def nvml(number: int) -> str:
    tenths, gpu = divmod(number, 8)
    return (
        f'{{"timestamp": {START + tenths / 10:.7f}, "gpu": {gpu}, "gpu_util_pct": {90 + tenths % 10}, '
        f'"memory_used_bytes": {1563230208 + tenths}, '
        f'"power_w": {650 + tenths % 5_000 / 100:.3f}, "power_limit_w": 700.0, "temperature_c": {50 + tenths % 20}, '
        f'"sm_clock_mhz": {1_300 + 15 * (tenths % 40)}, "max_sm_clock_mhz": 1980, "clocks_event_reasons": {4 * (tenths % 2)}}}\n'
    )


def dcgm(number: int) -> str:
    lines = []
    for name, value in DCGM:
        lines += [f"# HELP DCGM_FI_DEV_{name} It.\n", f"# TYPE DCGM_FI_DEV_{name} gauge\n"]
        for gpu in range(8):
            uuid, model = f"GPU-0000000{gpu}-1111-2222-3333-444444444444", "NVIDIA H100 80GB HBM3"
            labels = f'gpu="{gpu}",UUID="{uuid}",device="nvidia{gpu}",modelName="{model}",Hostname="node0"'
            lines.append(f"DCGM_FI_DEV_{name}{{{labels}}} {value} {(START + number) * 1_000}\n")
    return "".join(lines)


def dmon(number: int) -> str:
    seconds, gpu = divmod(number, 8)
    head = DMON if number % 80 == 0 else ""
    power, heat, use, clock = 650 + seconds % 50, 50 + seconds % 20, 90 + seconds % 10, 1_300 + 15 * (seconds % 40)
    return f"{head}{gpu:5} {power:6} {heat:6} {use:6}     40   2619 {clock:6}\n"


def ranges(number: int) -> str:
    """One series of a day, a value a second."""
    name, value = DCGM[number % len(DCGM)]
    values = ",".join(f'[{START + second}.123,"{value}"]' for second in range(86_400))
    comma = "," if number else '{"status":"success","data":{"resultType":"matrix","result":['
    return f'{comma}{{"metric":{{"__name__":"DCGM_FI_DEV_{name}","gpu":"{number // len(DCGM)}"}},"values":[{values}]}}'


HEADER = (
    "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W], temperature.gpu, clocks.current.sm [MHz], "
    "clocks.max.sm [MHz], clocks_event_reasons.active\n"
)
WAYS: dict[str, tuple[str, Callable[[int], str], str]] = {
    "nvidia-smi.csv": (HEADER, smi, ""),
    "nvml.jsonl": ("", nvml, ""),
    "dcgm.prom": ("", dcgm, ""),
    "dmon.log": ("", dmon, ""),
    "range.json": ("", ranges, "]}}"),
}


def _lines(row: Callable[[int], str], size: int) -> Iterator[str]:
    number = written = 0
    while written < size:
        text = row(number)
        yield text
        number, written = number + 1, written + len(text)


def gpu_logs(folder: Path) -> None:
    for name, (header, row, end) in WAYS.items():
        path = folder / name
        with path.open("w") as stream:
            stream.write(header)
            stream.writelines(_lines(row, BYTES))
            stream.write(end)
        print(f"Log of GPUs, {name}, {path.stat().st_size / 1e6:,.0f} MB")
        cost = measure("analyze", *ANALYZE, str(path))
        ratio("CPU of analyze to 10 s", cost.cpu / 10, 1.0)
        ratio("peak memory of analyze to 1 GB", cost.memory * 2**20 / 1e9, 1.0)
        path.unlink()
