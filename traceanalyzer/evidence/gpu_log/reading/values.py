"""How values of a log are written: numbers with or without units, in either decimal notation, and the words for none."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from traceanalyzer.evidence.gpu_log.reading.fields import bits_of

_NONE = frozenset(
    ("", "-", "n/a", "na", "none", "null", "nan", "unknown", "not supported", "not available", "unknown error", "err!")
) | {
    "gpu requires reset",
    "insufficient permissions",
    "not found",
    "requested functionality has been deprecated",
    "no data",
}
_YES, _NO = (
    frozenset(("active", "enabled", "yes", "true", "on")),
    frozenset(("not active", "disabled", "no", "false", "off")),
)
_NUMBER = re.compile(r"([-+]?[0-9][0-9.,'’\u00a0\u202f]*(?:[eE][-+]?\d+)?)\s*([^\d\s][^\d]*)?")
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_STATE = re.compile(r"[pP](\d{1,2})")
_DECIMAL_COMMA = re.compile(r"\d,\d{1,2}(?!\d)")
_DECIMAL_POINT = re.compile(r"\d\.\d{1,2}(?!\d)|\d\.\d{4,}")
_LARGEST = 1e18

# Of each measure: its units, and how many of its own (MHz, W, degrees, bytes, bytes a second, share) one is.
_SCALES: dict[str, dict[str, float]] = {
    "clock": {"MHz": 1, "Hz": 1e-6, "GHz": 1e3, "KHz": 1e-3},
    "power": {"W": 1, "mW": 1e-3, "kW": 1e3},
    "bytes": {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "MB": 2**20, "GB": 1e9, "KB": 2**10},
    "rate": {"B/s": 1, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "KiB/s": 2**10, "MiB/s": 2**20},
    "share": {"%": 0.01, "ratio": 1},
    "temperature": {"C": 1},
}
KINDS = {
    **dict.fromkeys(("sm_clock", "sm_clock_max", "mem_clock", "mem_clock_max"), "clock"),
    **dict.fromkeys(("power", "power_limit", "power_limit_default"), "power"),
    **dict.fromkeys(("temperature", "memory_temperature"), "temperature"),
    **dict.fromkeys(("memory_used", "memory_total", "memory_free"), "bytes"),
    **dict.fromkeys(("pcie_rx", "pcie_tx"), "rate"),
    **dict.fromkeys(("utilization", "memory_utilization", "sm_active", "tensor_active", "dram_active"), "share"),
}


def decimal_comma(texts: Iterable[str], semicolons: bool) -> bool:
    """Whether numbers are written with a decimal comma: told by those that can be read in one way only, else by what parts columns."""
    comma = point = False
    for text in texts:
        comma |= _DECIMAL_COMMA.search(text) is not None
        point |= _DECIMAL_POINT.search(text) is not None
    return comma and not point if comma != point else semicolons and not point


def number_of(text: str, comma: bool) -> tuple[float, str | None, bool]:
    """A value, its unit where that is written, and whether it could be read; NaN for one that was not measured."""
    bare = text.strip().strip('"').strip()
    if bare.startswith("[") and bare.endswith("]"):
        bare = bare[1:-1].strip()
    if (word := _word(bare)) is not None:
        return word, None, True
    if not (found := _NUMBER.fullmatch(bare)):
        return math.nan, None, False
    digits = re.sub(r"['’\u00a0\u202f]", "", found[1])
    digits = digits.replace(".", "").replace(",", ".") if comma else digits.replace(",", "")
    try:
        value = float(digits)
    except ValueError:
        return math.nan, None, False
    return _finite(value), (found[2] or "").strip() or None, math.isfinite(value)


def _word(bare: str) -> float | None:
    """What is no decimal number: words for none, yes and no, hexadecimal numbers, performance states and names of reasons."""
    low = bare.lower()
    if low in _NONE:
        return math.nan
    if low in _YES or low in _NO:
        return float(low in _YES)
    if _HEX.fullmatch(bare):
        return _finite(float(int(bare, 16)))
    if state := _STATE.fullmatch(bare):
        return float(state[1])
    bits = bits_of(bare) if bare.isascii() and len(bare) < 400 and not bare[:1].isdigit() else None
    return None if bits is None else float(bits)


def _finite(value: float) -> float:
    return value if abs(value) <= _LARGEST else math.nan


def factor_of(measure: str, unit: str | None) -> float | None:
    """What a value in this unit is to be multiplied by; None where the unit is not told, or none of this measure."""
    scales = _SCALES.get(KINDS.get(measure, ""))
    if scales is None:
        return 1.0
    if unit is None:
        return None
    return next(
        (factor for name, factor in scales.items() if name.lower() == unit.lower() and (name != "mW" or unit != "MW")),
        None,
    )


def usual_factor(measure: str, highest: float, whole: bool, is_share: bool = False) -> float:
    """What values without a unit are to be multiplied by: as nvidia-smi and NVML count, told by how large they get. `whole`: all of
    them are whole numbers; `is_share`: the source counts shares from 0 to 1."""
    kind = KINDS.get(measure)
    if kind == "share":
        return 1.0 if is_share or (highest <= 1 and not whole) else 0.01
    if kind == "bytes":
        return 1.0 if highest > 1e8 else float(2**20)
    if kind == "power":
        return 1e-3 if highest > 5_000 else 1.0
    if kind == "clock":
        return 1e-6 if highest > 1e7 else 1.0
    return 1.0
