"""What a file of NCCL's records is, told by its head."""

from __future__ import annotations

import re

from traceanalyzer.evidence.nccl_records.tables import INSPECTOR, LINK_TEST, RECORDER
from traceanalyzer.ingest.bytes.pickles import is_pickle
from traceanalyzer.ingest.bytes.source import Source

_FIRST_KEY = re.compile(
    rb'\{\s*"(?:comm_lib_version|nccl_version|entries|nccl_comm_state|pg_config|pg_status|version|rank|host_name)"\s*:'
)
_OF_TRACES = (b'"traceEvents"', b'"schemaVersion"')
_SPACES = b" \t\r\n\xef\xbb\xbf"
_OF_RECORDER = (b"pg_config", b"pg_status", b"nccl_comm_state", b"entries")
_OF_CALLS = (b"profiling_name", b"collective_seq_id", b"record_id")
_INSPECTOR = re.compile(rb'\{\s*"(?:header|metadata|coll_perf|p2p_perf|dump_stats|proxy_trace)"\s*:\s*\{')
_INSPECTOR_WORDS = (
    b"inspector_output_format_version",
    b"coll_exec_time_us",
    b"coll_msg_size_bytes",
    b"p2p_exec_time_us",
    b"dump_timestamp_us",
)
_LINK_JSON = re.compile(rb'\{\s*"version"\s*:\s*\d+\s*,\s*"start_time"\s*:')
_LINK_WORDS = (b'"nccl_version"', b"_perf", b'"bus_bw"')
_LINK_TEXT = re.compile(
    rb"(?:\A|\n)#\s*(?:nThread\s+\d+\s+nGpus|nccl-tests version|size\s+count\s+type\s+redop)|(?:\A|\n)#\s*Collective test starting"
)


def source_kind(source: Source) -> str | None:
    """Which of the recorders wrote it; None for any other file."""
    head = source.head
    if is_pickle(head):
        named = sum(_is_pickled(head, key) for key in _OF_RECORDER)
        calls = sum(_is_pickled(head, key) for key in _OF_CALLS)
        return RECORDER if named >= 2 or calls >= 2 else None
    text = head.lstrip(_SPACES)
    if not text.startswith(b"{"):
        return LINK_TEST if _LINK_TEXT.search(head[:8192]) else None
    if _INSPECTOR.match(text) and any(word in text for word in _INSPECTOR_WORDS):
        return INSPECTOR
    if _LINK_JSON.match(text) and any(word in text for word in _LINK_WORDS):
        return LINK_TEST
    return RECORDER if _is_recorder_json(text) else None


def _is_recorder_json(text: bytes) -> bool:
    """By its first key and others: in JSON of PyTorch keys come in the order of the alphabet."""
    if not _FIRST_KEY.match(text) or any(word in text for word in _OF_TRACES):
        return False
    calls = sum(b'"%b"' % key in text for key in _OF_CALLS)
    named = sum(b'"%b"' % key in text for key in _OF_RECORDER)
    return calls >= 2 or named >= 2


def _is_pickled(head: bytes, key: bytes) -> bool:
    """Whether a string is pickled in the head, in the short form or the long one."""
    return bytes((0x8C, len(key))) + key in head or b"X" + len(key).to_bytes(4, "little") + key in head
