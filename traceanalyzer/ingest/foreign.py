"""What people hand over that is no trace, told from its start: what it is, and what to hand over instead."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

# Starts of files, as patterns that match at the first byte, and what to say. {path} is the file, quoted for a shell, {record} how to
# get what is read.
_STARTS: tuple[tuple[str, str], ...] = (
    (r"version https://git-lfs", "this is a Git LFS pointer, not the trace; run `git lfs pull` first"),
    (
        r"\0{64}",
        "the file is full of zeros: it was never written, or a copy of it broke off; copy or record the trace again",
    ),
    (
        r"\s*<(?i:!doctype html|html)",
        "a web page, not the trace it was to be; download the file itself, signed in if need be",
    ),
    (r"PAR1", "a Parquet table; to read a store, name its folder"),
    (r"\x80[\x02-\x05][\x95}\](\x8a\x8c]", "a Python pickle that holds nothing that is read here; {record}"),
    (r"\x04\x22\x4d\x18", "LZ4 data; unpack it first: lz4 -d {path}"),
    (r"\x1f\x9d", "compress data; unpack it first: uncompress {path}"),
    (r"7z\xbc\xaf\x27\x1c", "a 7-Zip archive; unpack it and name the trace inside"),
    (r"Rar!\x1a\x07", "a RAR archive; unpack it and name the trace inside"),
    (r"PERFILE2", "a recording of Linux perf; give what `perf script --ns -i {path}` prints, beside a trace or alone"),
    (
        r"NVR\0",
        "a report of Nsight Compute; pip install 'traceanalyzer[ncu]' (NVIDIA's package ncu-report) to read it, or print it: "
        "ncu --import {path} --csv --page raw > raw.csv",
    ),
    (r"\x93NUMPY", "a NumPy array; {record}"),
    (
        r"(?s).{0,400}(?:\| NVIDIA-SMI|GPU \d+: NVIDIA )|[^\n{]{1,800}\[(?:%|MiB|W|MHz)\]",
        "output of nvidia-smi that is no log of GPUs over time, as `nvidia-smi --query-gpu=timestamp,... --format=csv -lms 100` "
        "writes it; {record}",
    ),
    (r"# (?:HELP|TYPE) ", "metrics in the format of Prometheus, none of which is known as one of a GPU; {record}"),
)
# What the start of JSON must hold, and what it then is.
_JSON: tuple[tuple[str, str], ...] = (
    (r"^\s*\[\s*\[\s*(?:-?\d|\[)", "a memory timeline of PyTorch, which holds no GPU work"),
    (
        r"\"timeDeltas\"\s*:|\"startTime\"\s*:\s*\d+[^{]{0,200}\"samples\"",
        "a CPU profile of V8, which holds no GPU work",
    ),
)
_PROTOBUF = (".pb", ".pftrace", ".perfetto-trace")
# What a page of ours saves for Perfetto begins with this.
_OWN_PAGE = b'{"savedFrom":"a page of traceanalyzer"'
_BOM = b"\xef\xbb\xbf"


def starts_as_json(head: bytes) -> bool:
    """Whether it begins like a JSON object or list."""
    return re.match(rb"\s*[\[{]", head.removeprefix(_BOM)) is not None


def is_own(head: bytes) -> bool:
    """Whether it is a result document or the manifest of a store."""
    return b'"schema_version"' in head[:40] and b'"traceanalyzer"' in head[:120]


def is_own_page(head: bytes) -> str | None:
    """What to say of what a page of ours saved; None for anything else."""
    if not head.startswith(_OWN_PAGE):
        return None
    return (
        "saved from a page of traceanalyzer for Perfetto: a picture of a trace, in which short slices may be merged; "
        "give the trace itself, or what traceanalyzer export makes of it"
    )


def explain(path: Path, head: bytes, record: str) -> str | None:
    """What a file is that is known to be none that is read, and what to do; None for any other. `record` is how to get what is read."""
    text = head.removeprefix(_BOM).decode("latin-1")
    if not starts_as_json(head):
        found = next((words for pattern, words in _STARTS if re.match(pattern, text)), None)
        return found and found.replace("{path}", shlex.quote(str(path))).replace("{record}", record)
    return next((f"{words}; {record}" for pattern, words in _JSON if re.search(pattern, text)), None)


def explain_suffix(path: Path) -> str | None:
    """What a file is called as, where its content says nothing."""
    if path.name.lower().endswith(_PROTOBUF):
        return (
            "a protocol buffer; of a JAX or TensorFlow profile, read the *.trace.json.gz that lies beside it "
            "(for JAX, create_perfetto_trace=True writes one)"
        )
    return None
