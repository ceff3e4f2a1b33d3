"""From profiles to nodes: which runs are one node's, which cells count, and what is beside a slow one."""

import contextlib
import json

import profile_builder as b
import pytest
from click.testing import CliRunner

from kit.audit.audit import machine_findings
from kit.cli.app import app
from kit.compare.fleet import judge, reduce_node
from kit.report.fleet import fleet_report

NODES = 8


def built(node, *, slow=1.0, run=0, kernel="6.1.0", cells=2, throttled=0.0, cpu="Example CPU", **more):
    """A node's profile: `slow` times as long as others'; `throttled`: share of its time by quota."""
    nets = [("mlp", 2.0), ("cnn", 30.0)][:cells]
    counters = {"cgroup.throttled_ns": 0.0 if not throttled else 2e6 * throttled * 2}
    groups = [
        b.group(f"{net} train", b.member("torch", ms * slow, net, sd=0.005, noise=0.005, counters=counters))
        for net, ms in nets
    ]
    fields = {"rounds": 4, "drift": 0.005, "seed": 100 * node + run, "id": f"{node}/{run}", "label": f"n{node}"}
    fields["created"] = f"2026-11-{run + 1:02}T00:00:00+00:00"
    return b.profile(*groups, identity=b.identity(cpu, kernel, hostname_sha256=f"{node:064}"), **fields | more)


def judged(*profiles):
    return judge([reduce_node(f"file{place}", each) for place, each in enumerate(profiles)])


def usual(count=NODES, first=1):
    return [built(node) for node in range(first, first + count)]


def verdicts(fleet):
    return {node.name: node.versus.verdict for node in fleet.nodes if node.versus.verdict in ("slower", "faster")}


def test_a_slow_node_comes_first_with_what_differs_there():
    fleet = judged(*usual(), built(0, slow=1.2, kernel="6.9.9"))
    assert verdicts(fleet) == {"n0": "slower"}
    slow = fleet.nodes[0]
    assert slow.name == "n0" and slow.versus.low < 1.2 < slow.versus.high
    assert [(of.kind, [value for value, _ in of.values]) for of in slow.differs] == [("kernel", ["6.1.0", "6.9.9"])]


def test_runs_of_a_node_are_one_and_a_copy_of_a_run_is_none():
    again = built(1, run=1)
    fleet = judged(*usual(), again, again)
    assert len(fleet.nodes) == NODES and fleet.repeated == [f"file{NODES + 1}"]
    assert {node.name: len(node.profiles) for node in fleet.nodes}["n1"] == 2


def test_a_cell_is_not_weighed_down_for_what_one_node_is_slow_by():
    """Of two nodes with ten profiles each one is slow in one cell of two."""
    fleet = judged(*(b_slow_in_cnn(node, run, 1.3 if node else 1.0) for node in range(2) for run in range(10)))
    assert verdicts(fleet) == {"n1": "slower", "n0": "faster"}
    assert fleet.nodes[0].versus.ratio == pytest.approx(1.3**0.5, rel=0.02)


def b_slow_in_cnn(node, run, slow):
    groups = [
        b.group(f"{net} train", b.member("torch", ms, net, sd=0.005, noise=0.005))
        for net, ms in (("mlp", 2.0), ("cnn", 30.0 * slow))
    ]
    fields = {"rounds": 4, "drift": 0.005, "seed": 100 * node + run, "id": f"{node}/{run}", "label": f"n{node}"}
    fields["created"] = f"2026-11-{run + 1:02}T00:00:00+00:00"
    return b.profile(*groups, identity=b.identity(hostname_sha256=f"{node:064}"), **fields)


def test_a_node_whose_cells_failed_is_named_and_no_fine_one():
    broken = built(0)
    dead = dict.fromkeys(range(8), b.reason("out_of_memory", signal="SIGKILL"))
    failed = b.group("cnn train", b.member("torch", 30.0, "cnn", failed_rounds=dead))
    fine = b.group("mlp train", b.member("torch", 2.0, sd=0.005, noise=0.005))
    fields = {"rounds": 4, "id": "0/0", "label": "n0", "identity": broken.identity}
    fleet = judged(b.profile(fine, failed, **fields), *usual())
    node = next(node for node in fleet.nodes if node.name == "n0")
    assert (node.failed, node.failure.code) == (1, "out_of_memory")
    part = fleet_report(judged(built(0, interrupted=True), *usual()))
    assert any(note.startswith("interrupted") and "file0" in note for note in part.notes)
    report = fleet_report(fleet)
    assert "1 with failed cells" in report.headline[0]
    assert [case.name for case in report.cases if case.outcome == "error"] == ["n0"]


def test_hosts_of_one_label_are_nodes_of_their_own():
    fleet = judged(*(built(node, label="after upgrade") for node in range(4)))
    assert len({node.name for node in fleet.nodes}) == 4


def test_other_hardware_is_judged_by_itself():
    other = [built(node, slow=3.0, cpu="Other CPU") for node in (20, 21, 22)]
    fleet = judged(*usual(), *other)
    assert verdicts(fleet) == {}
    nodes_of_kind = {node.name: node.nodes_of_kind for node in fleet.nodes}
    assert (nodes_of_kind["n20"], nodes_of_kind["n1"]) == (3, NODES)


def test_a_node_that_lacks_a_cell_is_judged_by_the_others():
    fleet = judged(*usual(), built(0, slow=1.3, cells=1), built(30, cells=1))
    assert verdicts(fleet) == {"n0": "slower"}
    assert {node.name: node.cells for node in fleet.nodes}["n0"] == 1


def test_what_the_audit_finds_of_the_machine_is_a_reason():
    assert [finding.code for finding in machine_findings("n0", built(0, throttled=0.4))] == ["throttled"]
    assert machine_findings("n0", built(0)) == []


@pytest.mark.parametrize(
    ("again", "state"), [((), (False, True, None)), ((1.2,), (True, False, True)), ((1.0,), (False, False, False))]
)
def test_a_node_is_a_suspect_by_one_profile_and_slow_by_two(again, state):
    more = [built(0, slow=slow, run=run) for run, slow in enumerate(again, 1)]
    fleet = judged(*usual(), built(0, slow=1.2), *more)
    (node,) = [node for node in fleet.nodes if node.name == "n0"]
    assert (node.is_slow, node.is_suspect, node.said_again) == state


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight like nodes, one slow by a quota in two profiles, and a damaged file."""
    made = tmp_path_factory.mktemp("fleet")
    slow = [built(0, slow=1.3, throttled=0.4, run=run) for run in range(2)]
    for name, each in {**{each.label: each for each in usual()}, "n0": slow[0], "n0+again": slow[1]}.items():
        b.write(made / f"{name}.json", each)
    (made / "torn.json").write_bytes((made / "n1.json").read_bytes()[:-300])
    return made


def fleet_command(folder, *words):
    with contextlib.chdir(folder):
        return CliRunner().invoke(app, ["fleet", *map(str, words)], standalone_mode=False)


def test_the_command_names_the_node_its_reason_and_the_damaged_file(folder):
    done = fleet_command(folder, "--from", ".")
    assert done.return_value == 1
    (slow,) = [line for line in done.stdout.splitlines() if line.startswith("n0 ")]
    assert "slow" in slow and "cgroup quota" in done.stdout
    assert "torn" in done.stdout


def test_formats_tell_a_suspect_from_a_slow_node(folder, tmp_path):
    for path in folder.glob("n?.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    lines = [
        json.loads(line) for line in fleet_command(tmp_path, "--from", ".", "--format", "jsonl").stdout.splitlines()
    ]
    assert [(line["node"], line["slow"]) for line in lines if line["suspect"]] == [("n0", 0)]
    junit = fleet_command(tmp_path, "--from", ".", "--format", "junit").stdout
    assert "<failure" not in junit and junit.count("<skipped") == 1


def test_formats_name_the_slow_node(folder):
    lines = [json.loads(line) for line in fleet_command(folder, "--from", ".", "--format", "jsonl").stdout.splitlines()]
    assert [line["node"] for line in lines if line.get("slow")] == ["n0"]
    assert [line["node"] for line in lines if not line["measured"]] == ["torn"]
    samples = fleet_command(folder, "--from", ".", "--format", "prometheus").stdout
    assert [
        line.split('"')[1]
        for line in samples.splitlines()
        if line.startswith("steadykit_fleet_slow{") and "} 1" in line
    ] == ["n0"]
    junit = fleet_command(folder, "--from", ".", "--format", "junit").stdout
    assert junit.count("<failure") == 1 and junit.count("<error") == 1


@pytest.mark.parametrize(
    ("left_out", "code"),
    [
        (("n0.json", "n0+again.json"), 3),
        (("n0.json", "n0+again.json", "torn.json"), 0),
        (("n0+again.json",), 5),
        (("n0.json", "torn.json"), 5),
    ],
    ids=str,
)
def test_it_exits_by_slow_nodes_and_suspects_and_by_what_is_missing(folder, tmp_path, left_out, code):
    for path in folder.glob("*.json"):
        if path.name not in left_out:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    assert fleet_command(tmp_path, "--from", ".").return_value == code


def test_where_no_node_has_another_of_its_kind_nothing_was_compared(folder, tmp_path):
    path = next(iter(sorted(folder.glob("*.json"))))
    (tmp_path / path.name).write_bytes(path.read_bytes())
    done = fleet_command(tmp_path, "--from", ".")
    assert done.return_value == 4 and "nothing to compare" in done.stdout
