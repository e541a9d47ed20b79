"""Addresses: of mail, of machines (IP, hardware, names that only machines have)."""

from __future__ import annotations

import ipaddress
import re

from traceanalyzer.redaction.assignments import HOST

SOMEONE = "user@host"
_INNER_NAMES = "internal|corp|lan|intra|local|localdomain|localnet"
"""What names end in that only exist within a network."""
HINT = "|".join(
    (
        r"[\w'\"]@[A-Za-z0-9\[]",
        r"\d\.\d+\.\d+\.\d",
        r"[0-9A-Fa-f][:-][0-9A-Fa-f]{1,4}[:-]|\b(?:[fF][cCdDeE]|[23][0-9A-Fa-f])[0-9A-Fa-f]{2}:|::[fF]{4}:",
        rf"(?i:ip-\d|\.(?:{_INNER_NAMES})\b)",
    )
)
"""Every text that `without_addresses` changes matches this (RE2)."""

_SYMBOLS = (
    r"(?!plt\b|GLIBC|CXXABI|GCC_|sha\d+\b|v\d|latest\b|(?:bf|fp|tf|int|uint|float|e)\d|lib[\w.-]*\.(?:so|dylib|dll))"
)
_MAIL = re.compile(
    rf"""(?<![\w@?$.%+:/-]) (?: [A-Za-z] [\w.+%-]*+ (?: : [^\s@/"'<>,;()]{{1,128}}+ )? | [0-9][\w.+%-]*+ (?=@ [\w-]+ \. ) ) @ {_SYMBOLS}
    (?: [A-Za-z][\w-]++ (?:\.[\w-]++)*+ | \d{{1,3}}(?:\.\d{{1,3}}){{3}} | \[[0-9A-Fa-f:.]{{2,45}}\] ) (?! [\w@(] )""",
    re.VERBOSE,
)
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d|-[a-zA-Z\d])")
_IPV6 = re.compile(
    r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}(?:[0-9A-Fa-f]{1,4}|(?:\d{1,3}\.){3}\d{1,3})?(?:%\w{1,16}+)?(?![\w:])"
)
_HARDWARE = re.compile(r"(?<![\w:-])(?:[0-9A-Fa-f]{2}([:-]))(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![\w:-])")
_CLOUD = re.compile(r"(?i)(?<![\w-])ip(?:-\d{1,3}){4}(?:\.[a-z][\w-]*+)*+")
_INNER = re.compile(
    rf"(?i)(?<![\w.-])(?=[\w.-]*\d|[\w.]*-)[a-z0-9][\w-]*+(?:\.[\w-]++)*?\.(?:{_INNER_NAMES})(?![\w.-])"
)
# What stands before four numbers with dots that are a version, and what before or behind an address.
_VERSION = re.compile(
    r"(?i)(?:version|release|driver|runtime|toolkit|build|\bver|\bv|cu\d+|cuda|cudnn|cublas\w*|nccl|tensorrt|trt|cufft|curand|cusolver|cusparse"
    r"|nvrtc|nvjitlink|cupti|nsight|nsys|torch|python|rocm|[=~<>]=)\s*[:=(]?\s*['\"]?v?$"
)
_PLACE = re.compile(
    r"(?i)(?:@|://|(?<![a-z])(?:ips?|host\w*|addr\w*|peer|node\w*|server|from|to|on|at|via|connect\w*|tcp|udp|bind|listen\w*)\s*[:=(]?\s*['\"]?)$"
)


def without_addresses(text: str) -> str:
    """The text without addresses. Idempotent. Versions of four numbers, times and C++ names stay."""
    if "@" in text:
        text = _MAIL.sub(SOMEONE, text)
    if ":" in text or "-" in text:
        text = _HARDWARE.sub(HOST, text)
    if ":" in text:
        text = _IPV6.sub(_ipv6, text)
    if "." in text:
        text = _IPV4.sub(_ipv4, text)
        text = _INNER.sub(HOST, text)
    return _CLOUD.sub(HOST, text) if "p-" in text or "P-" in text else text


def _ipv4(found: re.Match[str]) -> str:
    try:
        address = ipaddress.IPv4Address(found[0])
    except ValueError:
        return found[0]
    if address.is_loopback or address.is_unspecified or int(address) == 2**32 - 1:
        return found[0]
    before, behind = (
        found.string[max(found.start() - 32, 0) : found.start()],
        found.string[found.end() : found.end() + 7],
    )
    sure = bool(re.match(r":\d{2,5}\b|/\d{1,2}\b", behind)) or bool(_PLACE.search(before))
    if not sure and _VERSION.search(before):
        return found[0]
    # The first number of a version is small; networks of one's own begin with 10, 172 and 192.
    return HOST if sure or address.is_private or int(address) >> 24 >= 32 else found[0]


def _ipv6(found: re.Match[str]) -> str:
    text, _, zone = found[0].partition("%")
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return found[0]
    groups = [group for group in text.split(":") if group]
    telling = (
        bool(zone)
        or (text[:1] in "fF23" and not text[0].islower())
        or text[:2].lower() in ("fe", "fc", "fd", "20", "24", "26", "2a")
    )
    if address.is_loopback or address.is_unspecified or not re.search(r"\d", text):
        return found[0]
    # `f1::f2` may be a name of C++.
    return HOST if len(groups) >= 4 or (telling and re.match(r"[0-9A-Fa-f]{4}:", text)) or "." in text else found[0]
