"""Call stacks in the report: nothing of their time is lost on the way into the page."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from payloads import Block
from report_sample import HOSTILE, Sample, rows, sample
from trees_sample import Node, call_trees, tree_table, wide_tree

from traceanalyzer.report.html import render_html
from traceanalyzer.report.page_size import Budget
from traceanalyzer.report.palette import BY_KEY, CODES
from traceanalyzer.report.stills.trees import tree_still
from traceanalyzer.report.trees.forest import Forest, limit_nodes, read_forest
from traceanalyzer.report.trees.view import call_trees_view
from traceanalyzer.report.trees.words import KINDS, OTHER, colour_of, shown_name

Paths = dict[tuple[int, int | None, str], Counter[tuple[str, ...]]]

NODES: st.SearchStrategy[Node] = st.recursive(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["python", "call"]), st.integers(0, 2**40), st.just([])),
    lambda below: st.tuples(
        st.sampled_from("abc"), st.sampled_from(["python", "call"]), st.integers(0, 9), st.lists(below, max_size=4)
    ),
    max_leaves=12,
)
TREES = st.lists(
    st.tuples(
        st.integers(0, 3), st.sampled_from([None, 0, 1]), st.sampled_from(["idle", "gpu", "host", "later"]), NODES
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda one: one[:3],
)


def paths_of(table: pa.Table) -> Paths:
    """The time of each path of each rank, GPU and tree, without the root's name."""
    found: Paths = {}
    path: list[tuple[str, ...]] = []
    for row in table.to_pylist():
        if row["parent"] < 0:
            path = []
        one = f"{shown_name(row['name'], row['kind'])}/{row['kind']}"
        path.append(() if row["parent"] < 0 else (*path[row["parent"]], one))
        found.setdefault((row["rank"], row["device"], row["tree"]), Counter())[path[-1]] += row["self_ns"]
    return {key: +paths for key, paths in found.items() if +paths}


def decoded(blob: str) -> tuple[dict[str, Any], Paths]:
    """Read the payload by its documented layout; independent of the encoder."""
    block = Block(blob)
    header, read = block.header, block.read
    name, kind, _ = read("<u4", header["frames"]), read("u1", header["frames"]), read("u1", header["frames"])
    words = {label: key for key, (_, label, _) in KINDS.items()}
    found: Paths = {}
    for tree in header["trees"]:
        parent, frame = np.cumsum(read("<u4", tree["n"])), read("<u4", tree["n"])
        paths: list[tuple[str, ...]] = [()]
        for i in range(1, tree["n"]):
            assert parent[i] < i
            one = f"{header['names'][name[frame[i]]]}/{words[header['kinds'][kind[frame[i]]]]}"
            paths.append((*paths[parent[i]], one))
        for part in tree["parts"]:
            node = np.cumsum(read("<u4", part["n"]))
            own = read("<f8" if part["wide"] else "<u4", part["n"])
            amounts = Counter({paths[i]: int(ns) for i, ns in zip(node.tolist(), own.tolist(), strict=True)})
            if +amounts:
                found[part["rank"], part["device"], tree["key"]] = +amounts
    assert block.is_read
    return header, found


def view_of(table: pa.Table, most: int = 10_000, **tables: pa.Table):
    trees = Sample(call_trees=table, **tables)
    made = call_trees_view(read_forest(trees), trees, lambda rank: f"rank {rank}", most)
    assert made is not None
    return made


def forest_of(table: pa.Table) -> Forest:
    found = read_forest(Sample(call_trees=table))
    assert found is not None
    return found


@settings(deadline=None)
@given(TREES)
def test_every_path_of_every_rank_keeps_its_time(trees):
    table = tree_table(*((rank, device, tree, ("r", "root", 1, [node])) for rank, device, tree, node in trees))
    header, found = decoded(view_of(table).blob)
    assert found == paths_of(table)
    assert [tree["key"] for tree in header["trees"]] == [
        key for key in ("idle", "gpu", "host", "later") if any(key == one[2] for one in trees)
    ]


@settings(deadline=None)
@given(TREES, st.integers(1, 30))
def test_what_is_too_light_is_other_and_totals_stay(trees, most):
    """A path that ends in "(other)" has the time of all that goes from there and is not on the page."""
    table = tree_table(*((rank, device, tree, ("r", "root", 1, [node])) for rank, device, tree, node in trees))
    _, found = decoded(view_of(table, most).blob)
    whole = paths_of(table)
    assert found.keys() == whole.keys()
    for key, amounts in found.items():
        assert amounts.total() == whole[key].total()
        for path, ns in amounts.items():
            if path and path[-1] == f"{OTHER}/other":
                kept = {one[: len(path)] for one in amounts}
                gone = {one: time for one, time in whole[key].items() if one[: len(path) - 1] == path[:-1]}
                hidden = sum(
                    t
                    for one, t in gone.items()
                    if len(one) >= len(path) and one[: len(path)] not in kept_in(found, key)
                )
                assert ns == hidden, kept
            else:
                assert ns == whole[key][path]


def kept_in(found: Paths, key: tuple[int, int | None, str]) -> set[tuple[str, ...]]:
    """All nodes of a tree that are on the page, whosever time they have."""
    return {
        path[:n] for one, amounts in found.items() if one[2] == key[2] for path in amounts for n in range(len(path) + 1)
    }


def test_the_lightest_go_first_and_the_page_says_so():
    table = wide_tree(5_000)
    whole = forest_of(table).trees[0]
    fewer = limit_nodes(forest_of(table), 1_000)
    tree = fewer.trees[0]
    assert len(tree) < 1_000 * 2 and tree.left == len(whole) - sum(fewer.frames[f].name != OTHER for f in tree.frame)
    assert tree.totals()[0] == whole.totals()[0]
    named = np.array([fewer.frames[f].name != OTHER for f in tree.frame])
    lost = np.sort(whole.totals())[::-1][int(named.sum()) :]
    assert tree.totals()[named].min() >= lost.max()
    assert (np.diff(tree.parent) >= 0).all() and tree.parent[0] == -1
    page = render_html(sample()[0], Sample(**sample()[1].tables, call_trees=table), limit=2_500_000).decode()
    assert "totals are exact" in page


def test_long_names_take_no_more_than_their_share():
    letters = np.random.default_rng(1).integers(97, 122, (3_000, 500), dtype=np.uint8)
    below: list[Any] = [(line.tobytes().decode(), "python", 5_000 - k, []) for k, line in enumerate(letters)]
    fewer = limit_nodes(forest_of(tree_table((0, 0, "idle", ("r", "root", 0, below)))), 3_000)
    used = {fewer.frames[f].name for f in fewer.trees[0].frame}
    assert sum(map(len, used)) < 24 * 3_000 + 600 and OTHER in used
    assert fewer.trees[0].totals()[0] == sum(5_000 - k for k in range(3_000))


def test_siblings_stand_together_the_heaviest_first():
    tree = forest_of(call_trees()).trees[0]
    total = tree.totals()
    for parent in np.unique(tree.parent[1:]):
        children = np.flatnonzero(tree.parent == parent)
        assert (np.diff(children) == 1).all() and (np.diff(total[children]) <= 0).all()


def test_times_that_do_not_add_up_are_no_report():
    table = call_trees()
    wrong = table.set_column(
        7, table.schema.field(7), pa.array([ns + (k == 3) for k, ns in enumerate(table["total_ns"].to_pylist())])
    )
    with pytest.raises(ValueError, match="call tree 'idle' do not add up"):
        forest_of(wrong)
    mixed = table.take(pa.array([1, 0, *range(2, table.num_rows)]))
    with pytest.raises(ValueError, match="call tree 'idle' are not in order"):
        forest_of(mixed)


class Failing(Sample):
    def table(self, name: str) -> pa.Table:
        if name == "call_trees":
            raise KeyError("a fault in what makes it")
        return super().table(name)


def test_no_section_without_trees_but_faults_are_none_of_that():
    result, tables = sample()
    assert 'id="stacks"' not in render_html(result, tables).decode()
    assert 'id="stacks"' not in render_html(result, Sample(**tables.tables, call_trees=tree_table())).decode()
    assert 'id="stacks"' not in render_html(result, None).decode()
    with pytest.raises(KeyError, match="a fault"):
        render_html(result, Failing(**tables.tables))


def test_the_page_has_the_section_its_link_and_the_heaviest_stacks_as_text():
    result, tables = sample()
    page = render_html(result, Sample(**tables.tables, call_trees=call_trees())).decode()
    assert '<a href="#stacks">Stacks</a>' in page and "Where the time goes, by" in page
    assert '<option value="idle" selected>Idle time, 2 ms</option>' in page
    section = page[page.index('<section id="stacks"') : page.index("</section>", page.index('<section id="stacks"'))]
    assert HOSTILE not in page and "&lt;/script&gt;&lt;img" in section
    assert " style=" not in section and " onclick" not in section
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", section))
    assert "600 µs30.0%input › python3 › train.py(12): next_batch › decode" in text


def test_names_of_paths_are_redacted():
    root: Node = ("r", "root", 0, [("/home/alice/proj/train.py(12): step", "python", 5_000, [])])
    result, tables = sample()
    with_trees = Sample(**tables.tables, call_trees=tree_table((0, 0, "idle", root)))
    page = render_html(result, with_trees).decode()
    assert "alice" not in page and "proj/train.py(12): step" in page
    blob = re.search(r'id="stacks-data">([^<]*)<', page)
    assert blob and decoded(blob[1])[0]["names"] == ["Idle time", "proj/train.py(12): step"]
    assert "alice" in render_html(result, with_trees, redact=False).decode()


@pytest.mark.parametrize(("step_time", "steps"), [(96, 10.416667), (50, 0), (None, 0)])
def test_a_step_is_said_where_the_window_consists_of_steps(step_time, steps):
    ledger = rows("ledger", rank=[0], device=0, duration=1_000, step_count=10, step_time=step_time)
    header, _ = decoded(view_of(call_trees(1), ledger=ledger).blob)
    idle, _, host = header["trees"]
    assert [(part["label"], part["window"], part["steps"]) for part in idle["parts"]] == [
        ("rank 0 (GPU 0)", 1_000, steps)
    ]
    assert [(part["label"], part["device"], part["window"]) for part in host["parts"]] == [("rank 0", None, 0)]


def test_causes_have_their_words_and_colours():
    assert shown_name("host_work", "cause") == "host work" and shown_name("host_work", "python") == "host_work"
    assert colour_of("input", "cause", "idle") == CODES["idle.input"]
    assert colour_of("a later one", "cause", "idle") == CODES["idle.unattributed"]
    assert colour_of("nccl", "kernel", "communication") == CODES["exposed_communication"]
    assert colour_of("x", "of a later version", "idle") == CODES["tree"]
    legends = {tree.key: tree.legend for tree in view_of(call_trees()).trees}
    assert ("idle-input", "Idle: input", BY_KEY["idle.input"].meaning) in legends["idle"]
    assert [label for _, label, _ in legends["gpu"]] == ["Annotation", "Operator", "Kernel"]


def test_the_still_picture_holds_what_is_wide_enough():
    below: list[Any] = []
    for level in range(60):
        below = [(f"level {level}", "call", 10, below)]
    forest = forest_of(tree_table((0, 0, "idle", ("r", "root", 0, below))))
    svg = str(tree_still(forest.trees[0], forest.frames))
    assert "Idle time" in svg and "It goes on below." in svg and "style=" not in svg and len(svg) < 10_000
    hostile = tree_table((0, 0, "idle", ("r", "root", 0, [(HOSTILE, "python", 9, [])])))
    svg = str(tree_still(forest_of(hostile).trees[0], forest_of(hostile).frames))
    assert "<img" not in svg and "&lt;/script&gt;" in svg


def test_nodes_go_with_the_budget():
    assert Budget().nodes == 100_000
    smaller = Budget().halved()
    assert smaller is not None and smaller.nodes == 50_000


def test_the_same_trees_give_the_same_bytes_in_any_order_of_ranks():
    table = call_trees(3)
    ranks = [table.filter(pa.compute.equal(table["rank"], rank)) for rank in (2, 0, 1)]
    assert view_of(pa.concat_tables(ranks).unify_dictionaries()).blob != ""
    assert view_of(table).blob == view_of(table).blob
    assert decoded(view_of(pa.concat_tables(ranks)).blob)[1] == paths_of(table)


@pytest.mark.parametrize(
    ("bound_by", "first"), [("input", "idle"), ("compute", "gpu"), ("communication", "idle"), ("", "idle")]
)
def test_the_tree_that_the_verdict_is_about_comes_first(bound_by, first):
    """The sample has no communication: then it is idle time."""
    trees = Sample(call_trees=call_trees())
    made = call_trees_view(read_forest(trees), trees, lambda _: "", 1_000, bound_by)
    assert made is not None and made.trees[made.first].key == first
    assert made.trees[made.first].label in str(made.still)
