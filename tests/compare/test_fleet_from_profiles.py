"""From profiles to nodes: which runs are one node's, which cells count, and which node is slow."""

import profile_builder as b
import pytest

from kit.compare.fleet_nodes import judge, reduce_node

NODES = 8


def built(node, *, slow=1.0, run=0, slow_cnn=1.0, cells=2, cpu="Example CPU", **more):
    """A node's profile: `slow` times as long as others'."""
    nets = [("mlp", 2.0), ("cnn", 30.0 * slow_cnn)][:cells]
    groups = [b.group(f"{net} train", b.member("torch", ms * slow, net, sd=0.005, noise=0.005)) for net, ms in nets]
    fields = {"rounds": 4, "drift": 0.005, "seed": 100 * node + run, "id": f"{node}/{run}", "label": f"n{node}"}
    fields["created"] = f"2026-11-{run + 1:02}T00:00:00+00:00"
    return b.profile(*groups, identity=b.identity(cpu, hostname_sha256=f"{node:064}"), **fields | more)


def judged(*profiles):
    return judge([reduce_node(f"file{index}", each) for index, each in enumerate(profiles)])


def usual():
    return [built(node) for node in range(1, 1 + NODES)]


def verdicts(fleet):
    return {node.name: node.versus.verdict for node in fleet.nodes if node.versus.verdict in ("slower", "faster")}


def named(fleet, name="n0"):
    return next(node for node in fleet.nodes if node.name == name)


@pytest.mark.parametrize(
    ("again", "state"), [((), (False, True, None)), ((1.2,), (True, False, True)), ((1.0,), (False, False, False))]
)
def test_a_node_is_a_suspect_by_one_profile_and_slow_by_two(again, state):
    more = [built(0, slow=slow, run=run) for run, slow in enumerate(again, 1)]
    fleet = judged(*usual(), built(0, slow=1.2), *more)
    node = named(fleet)
    assert (node.is_slow, node.is_suspect, node.said_again) == state
    if not again:
        assert verdicts(fleet) == {"n0": "slower"} and fleet.nodes[0] is node
        assert node.versus.low < 1.2 < node.versus.high


def test_runs_of_a_node_are_one_and_a_copy_of_a_run_is_none():
    again = built(1, run=1)
    fleet = judged(*usual(), again, again)
    assert len(fleet.nodes) == NODES and fleet.repeated == [f"file{NODES + 1}"]
    assert len(named(fleet, "n1").profiles) == 2
    assert len(judged(*(built(node, label="after upgrade") for node in range(4))).nodes) == 4, "hosts of one label"


def test_a_cell_is_not_weighed_down_for_what_one_node_is_slow_by():
    """Of two nodes with ten profiles each one is slow in one cell of two."""
    fleet = judged(*(built(node, run=run, slow_cnn=1.3 if node else 1.0) for node in range(2) for run in range(10)))
    assert verdicts(fleet) == {"n1": "slower", "n0": "faster"}
    assert fleet.nodes[0].versus.ratio == pytest.approx(1.3**0.5, rel=0.02)


def test_other_hardware_is_judged_by_itself():
    fleet = judged(*usual(), *(built(node, slow=3.0, cpu="Other CPU") for node in (20, 21, 22)))
    assert verdicts(fleet) == {}
    assert [named(fleet, name).nodes_of_kind for name in ("n20", "n1")] == [3, NODES]


def test_a_node_that_lacks_a_cell_is_judged_by_the_others():
    fleet = judged(*usual(), built(0, slow=1.3, cells=1), built(30, cells=1))
    assert verdicts(fleet) == {"n0": "slower"} and named(fleet).cells == 1
