"""Texts without what tells of a person or a machine: folders above the project, users, hosts, credentials.

A name that merely has slashes (`fwd/layer1`, `/encoder/layer.0/MatMul`, `GB/s`) is no path: a path starts with a folder that file
systems have at their root, or ends in a file's extension.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath, PureWindowsPath

SOMEONE = "user@host"
HINT = (
    r"(?:^|[^\w)\]>])/|/(?:home|Users)/|[A-Za-z]:[\\/]|\\\\|\w@[A-Za-z]|torchinductor_|(?:hf|gh[pos]|pat|xox.)[_-]"
    r"|(?i:token|passwd|password|secret|key|auth)="
)
"""Every text that changes matches this (RE2): a cheap way to leave most of them alone."""

_HOMES = ("home", "Users", "users")
# Below these lie folders named after people; below the others that count as roots do not.
_SHARED = (
    *("scratch", "lustre", "gpfs", "mnt", "data", "nfs", "work", "projects", "project", "export", "net", "global", "cluster", "fsx"),
    *("efs", "storage", "shared", "ceph", "beegfs", "raid", "media", "Volumes", "tmp", "var", "private", "nvme", "ssd", "fs"),
)  # fmt: skip
_PLAIN = (
    *("root", "opt", "usr", "srv", "proc", "etc", "lib", "lib64", "bin", "sbin", "run", "dev", "workspace", "app", "code"),
    *("content", "kaggle", "conda", "dbfs"),
)  # fmt: skip
_EXTENSIONS = (
    r"(?:py[cixo]?|so(?:\.\d+)*|c|cc|cpp|cxx|cu|cuh|h|hh|hpp|ptx|cubin|json|gz|xz|bz2|zst|zip|tar|sqlite|nsys-rep|ncu-rep|qdrep|pt|pth|ckpt"
    r"|bin|safetensors|onnx|engine|plan|ya?ml|toml|cfg|ini|txt|log|csv|tsv|parquet|arrow|npy|npz|h5|hdf5|tfrecord|ipynb|sh|exe|dll|dylib"
    r"|whl|egg|rs|go|js|ts|java|rb|pl|cmake|pickle|pkl|html|db|lock)"
)
_PART = r"[^/\\\s\"'`<>(),;|:*?\[\]{}=]+"
_ROOTS = "|".join(re.escape(name) for name in (*_SHARED, *_PLAIN))
_WINDOWS_PART = r"[^/\\\s\"'`<>(),;|:*?\[\]{}=+^$]+"
_SPACED = rf"{_WINDOWS_PART}(?:[ ]{_WINDOWS_PART})*"

_PATTERN = re.compile(
    rf"""
      (?P<url>  \b[a-zA-Z][a-zA-Z0-9+.-]{{0,20}}:// [^\s"'`<>(){{}}\\]+ )
    | (?P<drive> (?<![A-Za-z0-9]) [A-Za-z]:[\\/] (?: {_SPACED} [\\/]+ )+ {_WINDOWS_PART}
               | (?<![A-Za-z0-9]) [A-Za-z]:[\\/] {_WINDOWS_PART} \.{_EXTENSIONS} (?![\w]) )
    | (?P<unc>  (?<![\w\\]) \\\\ [\w.-]+ \\ [\w$.-]+ (?: \\ {_SPACED} )* )
    | (?P<home> (?:\.\.(?:/\.\.)*)? /+(?:home|Users)/ (?: {_PART} (?: \x20 {_PART} )? (?= / ) | {_PART} ) (?: /+ {_PART} )* /? )
    | (?P<root> (?<![\w)\]>/]) /+ (?:{_ROOTS})\d* (?: /+ {_PART} )+ /? )
    | (?P<file> (?<![\w)\]>/.]) (?: /+ {_PART} )+? / (?:{_PART}) \.{_EXTENSIONS} (?![\w/]) )
    | (?P<inductor> torchinductor_ [\w.-]+ )
    | (?P<secret> (?<![A-Za-z0-9_])(?i:token|password|passwd|secret|api[_-]?key|access[_-]?key|auth) = (?!\d+\b)[^\s&"',;]{{8,}} )
    | (?P<token> (?<![A-Za-z0-9]) (?: hf|ghp|gho|ghs|github_pat|glpat|xox[abp] ) [_-] [A-Za-z0-9_-]{{16,}} )
    | (?P<someone> (?<![\w@?$.%+-]) [A-Za-z][\w.+-]* @ (?!plt\b|GLIBC|CXXABI|lib[\w.-]*\.(?:so|dylib|dll))
                   [A-Za-z][\w-]* (?:\.[\w-]+)* (?![\w@(]) )
    """,
    re.VERBOSE,
)
_PACKAGES = re.compile(r"^(?:site-packages|dist-packages|python3\.\d+|python3)$")
# PyTorch's own name for a trace: host_process.time.pt.trace.json
_HOST_NAMED = re.compile(r"^.+(_\d+\.\d{10,}\.pt\.trace\.json)")


def redacted_text(text: str) -> str:
    """The text with every path shortened to what helps, and with neither users nor hosts nor credentials. Idempotent.

    Of an installed package the path from the package on stays, of any other its last two parts, without the name of a user's folder.
    """
    return _PATTERN.sub(_shorter, text)


def file_name(path: str) -> str:
    """The name of an input: without its folders, and without the host that PyTorch puts into it."""
    return _HOST_NAMED.sub(r"host\1", PureWindowsPath(PurePosixPath(path).name).name)


def _shorter(found: re.Match[str]) -> str:
    shorter = _SHORTER.get(found.lastgroup or "")
    return shorter(found[0]) if shorter else _path([part for part in found[0].split("/") if part.strip(".")], "/")


def _url(text: str) -> str:
    scheme, _, rest = text.partition("://")
    place, *_ = re.split(r"[?#]", rest)
    parts = [part for part in place.split("/") if part]
    if scheme == "file":
        return _path(parts, "/") if parts else scheme
    return f"{scheme}://" + "/".join(["…", *parts[1:][-2:]])


def _path(parts: list[str], separator: str) -> str:
    """What is shown of an absolute path. Something always stays, so that a text keeps its shape."""
    packages = [at for at, part in enumerate(parts) if _PACKAGES.match(part)]
    if packages and packages[-1] + 1 < len(parts):
        return separator.join(parts[packages[-1] + 1 :])
    homes = [at for at, part in enumerate(parts) if part in _HOMES]
    root = parts[0].rstrip("0123456789")
    gone = homes[0] + 2 if homes else 3 if root in _SHARED else 1
    kept = parts[gone:] or ([] if homes and len(parts) <= gone else parts[-1:])
    return separator.join(kept[-2:]) or "…"


_SHORTER: dict[str, Callable[[str], str]] = {
    "url": _url,
    "drive": lambda text: _path(re.split(r"[\\/]+", text[3:]), "\\"),
    "unc": lambda text: _path(["mnt", *text[2:].split("\\")], "\\"),
    "inductor": lambda _: "torchinductor",
    "secret": lambda text: text.partition("=")[0] + "=…",
    "token": lambda _: "…",
    "someone": lambda _: SOMEONE,
}
"""How what a group of the pattern found is shown; the other groups find POSIX paths."""


def without_hosts(hosts: set[str]) -> Callable[[str], str]:
    """What takes these hosts' names out of a text. Names that are plain words (`gpu`, `localhost`) stay: they tell of nobody."""
    telling = sorted(
        (host for host in hosts if len(host) > 3 and re.search(r"[\d.-]", host)), key=lambda host: (-len(host), host)
    )
    if not telling:
        return lambda text: text
    pattern = re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, telling)) + r")(?![\w-])")
    return lambda text: pattern.sub("host", text)
