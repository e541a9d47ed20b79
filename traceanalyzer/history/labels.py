"""What a capture is labelled with where nobody says it: by the variables of pipelines and schedulers, and by Git."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from traceanalyzer.errors import InputError
from traceanalyzer.records import dataclass

_VARIABLES = {
    "commit": ("GITHUB_SHA", "CI_COMMIT_SHA", "BUILDKITE_COMMIT", "CIRCLE_SHA1", "BUILD_SOURCEVERSION", "GIT_COMMIT"),
    "branch": (
        "GITHUB_HEAD_REF",
        "GITHUB_REF_NAME",
        "CI_COMMIT_REF_NAME",
        "BUILDKITE_BRANCH",
        "CIRCLE_BRANCH",
        "BUILD_SOURCEBRANCHNAME",
        "GIT_BRANCH",
    ),
    "project": (
        "GITHUB_REPOSITORY",
        "CI_PROJECT_PATH",
        "BUILDKITE_PIPELINE_SLUG",
        "CIRCLE_PROJECT_REPONAME",
        "BUILD_REPOSITORY_NAME",
        "JOB_NAME",
        "SLURM_JOB_NAME",
    ),
    "host": ("SLURMD_NODENAME", "NODE_NAME"),
}
"""Of GitHub, GitLab, Buildkite, CircleCI, Azure Pipelines and Jenkins, and of Slurm and Kubernetes' downward API: the first that is
set."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_MOST = 256
"""Letters of a label."""
_GIT_S = 5.0


@dataclass(frozen=True)
class Head:
    """What is checked out: `time_ns` is when it was committed. `changed` says that files differ from it."""

    commit: str
    branch: str | None
    time_ns: int
    changed: bool


def labels_for(
    given: Iterable[str], time_ns: int | None, environment: Mapping[str, str], head: Head | None
) -> dict[str, str]:
    """The labels of a capture that was recorded at a time: those that are `given` as NAME=VALUE, then those of a pipeline, then
    those of Git. Raises InputError.

    What is checked out labels no capture that is older than it is: it ran something else.
    """
    found = {
        name: value[:_MOST]
        for name, variables in _VARIABLES.items()
        if (value := next(filter(None, map(environment.get, variables)), None))
    }
    if head is not None and "commit" not in found and (time_ns is None or time_ns >= head.time_ns):
        found["commit"] = f"{head.commit}-dirty" if head.changed else head.commit
        if head.branch:
            found.setdefault("branch", head.branch)
    found.update(given_labels(given))
    return {name: value for name, value in sorted(found.items()) if value}


def given_labels(texts: Iterable[str]) -> dict[str, str]:
    """Labels that are written as NAME=VALUE. Raises InputError."""
    return dict(map(_label, texts))


def _label(text: str) -> tuple[str, str]:
    name, sign, value = (part.strip() for part in text.partition("="))
    if not sign or not _NAME.fullmatch(name) or len(value) > _MOST or not value.isprintable():
        raise InputError(f"--label {text}: write NAME=VALUE, such as config=8gpu-bf16")
    return name, value


def head_of(folder: Path) -> Head | None:
    """What is checked out in a folder; None without Git or a repository."""
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        commit, time = _git(folder, "log", "-1", "--format=%H %ct").split()
        branch = _git(folder, "rev-parse", "--abbrev-ref", "HEAD")
        changed = bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))
        return Head(commit, None if branch == "HEAD" else branch, int(time) * 10**9, changed)
    return None


def _git(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True, timeout=_GIT_S
    )
    return done.stdout.strip()
