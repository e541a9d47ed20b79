"""Paths and URLs, shortened to what helps: the last two parts, or what follows the folder of installed packages.

A name that merely has slashes (`fwd/layer1`, `/encoder/layer.0/MatMul`, `GB/s`) is no path: a path starts with a folder that file
systems have at their root, or ends in a file's extension.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from traceanalyzer.redaction.credentials import HIDDEN, is_random

NOTHING = "…"
HINT = r"(?:^|[^\w)\]>])/|/(?:home\d*|Users)/|[A-Za-z]:[\\/]|\\\\|torchinductor_|~[A-Za-z_]|://"
"""Every text that `without_places` changes matches this (RE2)."""

# Below these lie folders named after people ...
_HOME = re.compile(r"home\d*|Users|users|homes|Documents and Settings")
# ... and below these, if they stand near the root.
_NEAR_ROOT = re.compile(r"u\d*|h|user|people|students?|staff|usr\d+|homefs|nethome|gpfs-home|userdata")
# Of these the third folder is the first that is not somebody's; of the others that count as roots it is the first.
_SHARED = frozenset((
    *("scratch", "lustre", "gpfs", "mnt", "data", "nfs", "work", "projects", "project", "export", "net", "global"),
    *("cluster", "fsx", "efs", "storage", "shared", "ceph", "beegfs", "raid", "media", "Volumes", "tmp", "var"),
    *("private", "nvme", "ssd", "fs", "afs", "pscratch", "lus", "pfs", "vast", "weka", "ddn", "hpc", "lfs", "p", "g"),
    *("n", "s", "proj", "group", "groups", "team", "teams", "dss", "hdd", "disk", "local", "localdisk", "lscratch"),
    *("datasets", "archive", "cfs", "flare", "eagle", "grand", "orion", "ccs", "autofs", "cygdrive", "exports"),
    *("workspaces", "persist", "vol", "volume", "volumes", "remote", "llustre", "orcd", "om", "om2", "rds", "ptmp"),
    *("iopsstor", "capstor"),
))  # fmt: skip
_PLAIN = frozenset((
    *("root", "opt", "usr", "srv", "proc", "etc", "lib", "lib64", "bin", "sbin", "run", "dev", "workspace", "app"),
    *("code", "content", "kaggle", "conda", "dbfs", "sys", "nix", "snap", "Applications", "Library", "System", "c"),
    *("d",),
))  # fmt: skip
_EXTENSION = re.compile(
    r".+\.(?:py[cixo]?|so(?:\.\d+)*|c|cc|cpp|cxx|cu|cuh|h|hh|hpp|ptx|cubin|json|gz|xz|bz2|zst|zip|tar|sqlite|nsys-rep|ncu-rep|qdrep|pt|pth|ckpt"
    r"|bin|safetensors|onnx|engine|plan|ya?ml|toml|cfg|ini|txt|log|csv|tsv|parquet|arrow|npy|npz|h5|hdf5|tfrecord|ipynb|sh|exe|dll|dylib"
    r"|whl|egg|rs|go|js|ts|java|rb|pl|cmake|pickle|pkl|html|db|lock|md|env|pem|key|store)"
)
_PACKAGES = re.compile(r"site-packages|dist-packages|python3\.\d+|python3")

_PART = r"[^/\\\s\"'`<>(),;|:*?\[\]{}=]"
_URL = re.compile(r"(?<![A-Za-z0-9+.-])([a-zA-Z][a-zA-Z0-9+.-]{0,30}+)://([^\s\"'`<>(){}\\]++)")
# A folder named after a person may have spaces: up to three, before the next slash.
_SPACED_HOME = re.compile(rf"(/(?:home\d*|Users|users)/{_PART}++(?:\x20{_PART}++){{1,3}}+)(?=/)")
_RUN = re.compile(rf"(?:{_PART}|/)++")
_WINDOWS_PART = r"[^/\\\s\"'`<>(),;|:*?\[\]{}=+^$]"
_SPACED = rf"{_WINDOWS_PART}++(?:\x20{_WINDOWS_PART}++)*+"
_DRIVE = re.compile(rf"(?<![A-Za-z0-9])[A-Za-z]:[\\/]++((?:{_SPACED}[\\/]++)*+)({_WINDOWS_PART}*+)")
_SHARE = re.compile(rf"(?<![\w\\])\\{{2,4}}+[\w.$-]++\\++[\w$.-]++(?:\\++{_SPACED})*+")
_TILDE = re.compile(r"(?<![\w~/.)\]])~[A-Za-z_][\w.-]*+(?=[/\\])")
_INDUCTOR = re.compile(r"torchinductor_[\w.-]++")


def without_places(text: str) -> str:
    """The text with every path and URL shortened. Something always stays, so that a text keeps its shape. Idempotent."""
    if "://" in text:
        text = _URL.sub(_url, text)
    if "torchinductor_" in text:
        text = _INDUCTOR.sub("torchinductor", text)
    if "\\" in text or ":/" in text:
        text = _SHARE.sub(
            lambda found: shorten_path(["mnt", *re.split(r"\\+", found[0])[1:]], "\\"), _DRIVE.sub(_drive, text)
        )
    if "~" in text:
        text = _TILDE.sub("~", text)
    if "/" in text:
        text = _RUN.sub(_run, _SPACED_HOME.sub(lambda found: found[1].replace(" ", "_"), text) if " " in text else text)
    return text


def _url(found: re.Match[str]) -> str:
    scheme, rest = found.groups()
    place = re.split(r"[?#]", rest, maxsplit=1)[0]
    parts = [part for part in place.split("/") if part]
    if scheme == "file":
        return shorten_path(parts, "/") if parts else scheme
    kept = [HIDDEN if _is_token(part) else part for part in parts[1:][-2:]]
    return f"{scheme}://" + "/".join([NOTHING, *kept])


def _is_token(part: str) -> bool:
    """Whether a part of a URL is what a web hook or a bot has there."""
    return ":" in part or (len(part) >= 16 and not _EXTENSION.fullmatch(part) and is_random(part))


def _drive(found: re.Match[str]) -> str:
    if not found[1] and not _EXTENSION.fullmatch(found[2]):
        return found[0]
    return shorten_path([part for part in re.split(r"[\\/]+", found[1] + found[2]) if part], "\\")


def _run(found: re.Match[str]) -> str:
    """What is shown of a run of signs that a path may have; all of it, unless it is one."""
    run = found[0]
    parts = [part for part in run.split("/") if part.strip(".")] if "/" in run else []
    before = found.string[found.start() - 1] if found.start() else ""
    if not parts or (before == ":" and run.startswith("//")):
        return run  # the second is a URL, which is short already
    if run.startswith(("/", "../", "./")):
        told = before not in (")", "]", ">") and _is_path(run, parts)
    else:
        # Relative: only what lies below somebody's home is no one's business.
        told = any(part in ("home", "Users") for part in parts[1:-1])
    return shorten_path(parts, "/") if told else run


def _is_path(run: str, parts: Sequence[str]) -> bool:
    home = any(_HOME.fullmatch(part) for part in parts[:-1])
    root = parts[0].rstrip("0123456789") or parts[0]
    known = root in _SHARED or root in _PLAIN or _NEAR_ROOT.fullmatch(parts[0])
    file = known or _EXTENSION.fullmatch(parts[-1].rstrip("."))
    return home or (len(parts) > 1 and bool(file) and not run.startswith("."))


def shorten_path(parts: Sequence[str], separator: str) -> str:
    """What is shown of an absolute path."""
    packages = [at for at, part in enumerate(parts) if _PACKAGES.fullmatch(part)]
    if packages and packages[-1] + 1 < len(parts):
        return separator.join(parts[packages[-1] + 1 :])
    gone = _home_end(parts)
    if gone is None:
        root = parts[0].rstrip("0123456789")
        gone = (4 if len(parts) > 3 and len(parts[2]) == 1 else 3) if root in _SHARED else 1
        # The last part is a file's, unless it is a folder that may be called after somebody.
        last = parts[-1:] if root not in _SHARED or _EXTENSION.fullmatch(parts[-1].rstrip(".")) else []
        kept = parts[gone:] or last
    else:
        kept = parts[gone:]
    return separator.join(kept[-2:]) or NOTHING


def _home_end(parts: Sequence[str]) -> int | None:
    """How many parts lead to somebody's folder, that one included; None where there is none."""
    for at, part in enumerate(parts):
        near_root = at <= 2 and _NEAR_ROOT.fullmatch(part)
        if near_root or _HOME.fullmatch(part):
            name = at + 1
            while name + 1 < len(parts) and _is_initial(parts[name], parts[name + 1], bool(near_root)):
                name += 1
            return name + 1
    return None


def _is_initial(part: str, following: str, sure: bool) -> bool:
    """Whether a folder is one that large sites put before those of people: an initial, or a number."""
    return part.isdigit() or (len(part) <= 2 and (following.startswith(part) or (sure and len(part) == 1)))
