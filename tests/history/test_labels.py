"""Labels that nobody gave: of pipelines and of Git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from traceanalyzer.errors import InputError
from traceanalyzer.history.labels import Head, given_labels, head_of, labels_for

HEAD = Head("c" * 40, "topic", 1_000, False)
PIPELINES = {
    "GitHub": (
        {"GITHUB_SHA": "c1", "GITHUB_HEAD_REF": "", "GITHUB_REF_NAME": "main", "GITHUB_REPOSITORY": "team/model"},
        {"commit": "c1", "branch": "main", "project": "team/model"},
    ),
    "GitHub, of a pull request": (
        {"GITHUB_SHA": "c1", "GITHUB_HEAD_REF": "topic", "GITHUB_REF_NAME": "7/merge"},
        {"commit": "c1", "branch": "topic"},
    ),
    "GitLab": (
        {"CI_COMMIT_SHA": "c2", "CI_COMMIT_REF_NAME": "main", "CI_PROJECT_PATH": "team/model"},
        {"commit": "c2", "branch": "main", "project": "team/model"},
    ),
    "Buildkite": (
        {"BUILDKITE_COMMIT": "c3", "BUILDKITE_BRANCH": "main", "BUILDKITE_PIPELINE_SLUG": "model"},
        {"commit": "c3", "branch": "main", "project": "model"},
    ),
    "CircleCI": (
        {"CIRCLE_SHA1": "c4", "CIRCLE_BRANCH": "main", "CIRCLE_PROJECT_REPONAME": "model"},
        {"commit": "c4", "branch": "main", "project": "model"},
    ),
    "Azure": (
        {"BUILD_SOURCEVERSION": "c5", "BUILD_SOURCEBRANCHNAME": "main", "BUILD_REPOSITORY_NAME": "team/model"},
        {"commit": "c5", "branch": "main", "project": "team/model"},
    ),
    "Jenkins": (
        {"GIT_COMMIT": "c6", "GIT_BRANCH": "main", "JOB_NAME": "model"},
        {"commit": "c6", "branch": "main", "project": "model"},
    ),
    "Slurm": ({"SLURM_JOB_NAME": "train", "SLURMD_NODENAME": "n7"}, {"project": "train", "host": "n7"}),
    "Kubernetes": ({"NODE_NAME": "n8"}, {"host": "n8"}),
    "none": ({"PATH": "/bin"}, {}),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_says_what_it_runs(name: str) -> None:
    variables, labels = PIPELINES[name]
    assert labels_for([], 2_000, variables, None) == labels


def test_git_says_it_where_no_pipeline_does() -> None:
    assert labels_for([], 2_000, {}, HEAD) == {"commit": HEAD.commit, "branch": "topic"}
    assert labels_for([], 2_000, {"GITHUB_SHA": "c1"}, HEAD) == {"commit": "c1"}
    assert labels_for([], 2_000, {"GITHUB_REF_NAME": "main"}, HEAD) == {"commit": HEAD.commit, "branch": "main"}
    assert labels_for([], 2_000, {}, Head(HEAD.commit, None, 1_000, False)) == {"commit": HEAD.commit}


def test_changed_files_are_said() -> None:
    assert labels_for([], 2_000, {}, Head("c1", "main", 1_000, True))["commit"] == "c1-dirty"


def test_a_capture_that_is_older_than_the_commit_ran_another_one() -> None:
    assert labels_for([], 999, {}, HEAD) == {}
    assert labels_for([], 1_000, {}, HEAD)["commit"] == HEAD.commit
    assert labels_for([], None, {}, HEAD)["commit"] == HEAD.commit


def test_what_is_given_comes_first_and_may_be_empty() -> None:
    labels = labels_for(["branch=mine", "config = 8gpu", "commit="], 2_000, {"NODE_NAME": "n"}, HEAD)
    assert labels == {"branch": "mine", "config": "8gpu", "host": "n"}
    assert list(labels) == sorted(labels)


def test_a_label_may_hold_equals_signs_and_any_words() -> None:
    assert given_labels(["note=a = b", "team.name-2_x=größe"]) == {"note": "a = b", "team.name-2_x": "größe"}


@pytest.mark.parametrize(
    "text", ["", "commit", "=x", "1a=x", "a b=x", "a/b=x", f"a={'x' * 257}", "a=x\ny", "a=\x1b[31m", f"{'a' * 65}=x"]
)
def test_what_is_no_label_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="write NAME=VALUE, such as config=8gpu-bf16"):
        given_labels([text])


def test_a_pipeline_with_a_long_name_is_cut() -> None:
    assert labels_for([], None, {"JOB_NAME": "x" * 1000}, None) == {"project": "x" * 256}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """With one commit of 2001-09-09T01:46:40Z on the branch topic."""
    git(tmp_path, "init", "-q", "-b", "topic")
    (tmp_path / "train.py").write_text("pass\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {f"GIT_{role}_DATE": "1000000000 +0000" for role in ("AUTHOR", "COMMITTER")}
    environment = {**os.environ, **who, **when, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_what_is_checked_out(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert head_of(repository) == Head(commit, "topic", 10**18, False)
    (repository / "untracked.json").write_text("{}")
    assert head_of(repository) == Head(commit, "topic", 10**18, False)
    (repository / "train.py").write_text("changed\n")
    assert head_of(repository) == Head(commit, "topic", 10**18, True)


def test_a_commit_without_a_branch(repository: Path) -> None:
    git(repository, "checkout", "-q", "--detach")
    head = head_of(repository)
    assert head and head.branch is None


def test_no_repository_and_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert head_of(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert head_of(tmp_path) is None  # without a commit
    monkeypatch.setenv("PATH", "")
    assert head_of(tmp_path) is None
