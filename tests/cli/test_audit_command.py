"""`kit audit`: what it exits with, what each format holds, and what it says of input that is none."""

import contextlib
import json
import runpy
import shlex
from pathlib import Path

import jsonschema
import msgspec
import profile_builder as b
import pytest
from kit_process import invoke
from msgspec.structs import replace

from kit.audit.finding import AUDIT_SCHEMA, Audit
from kit.audit.remedies import REMEDIES
from kit.audit.rule import all_rules, sentences
from kit.profile.facts import Accelerator, device_facts

# Rules that can be asked of these profiles, and find nothing where nothing is planted.
QUIET = "stalls,cpus-beyond,missing-cell"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A quiet run, one with stalls, one without counters, and a damaged one."""
    made = tmp_path_factory.mktemp("profiles")
    for name, plan in {
        "quiet": b.member("torch", 2.0),
        "stalls": b.member("torch", 2.0, stall=0.3),
        "bare": b.member("torch", 2.0, change=lambda launch: launch.blocks.counters.clear()),
    }.items():
        b.write(made / f"{name}.json", b.profile(b.group("mlp train", plan), id=name))
    (made / "empty").mkdir()
    (made / "broken").mkdir()
    (made / "broken/good.json").write_bytes((made / "stalls.json").read_bytes())
    (made / "broken/bad.json").write_bytes((made / "quiet.json").read_bytes()[:-400])
    return made


def audit(folder, *words):
    with contextlib.chdir(folder):
        return invoke("audit", *words)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("quiet.json", "--rule", QUIET), 0),
        (("stalls.json", "--rule", QUIET), 1),
        (("stalls.json", "--rule", QUIET, "--fail-on", "bad"), 0),
        (("bare.json", "--rule", "cpus-beyond"), 5),
        (("bare.json", "--rule", "cpus-beyond", "--fail-on", "bad"), 0),
        (("bare.json", "--rule", QUIET, "--without", "cpus-beyond"), 0),
        (("broken", "--rule", QUIET), 2),
    ],
    ids=str,
)
def test_it_exits_by_what_was_found_and_what_could_not_be_checked(folder, words, code):
    assert audit(folder, *words).return_value == code


def test_json_satisfies_the_published_schema(folder, request):
    document = json.loads(audit(folder, "stalls.json", "bare.json", "--json").stdout)
    published = json.loads((request.config.rootpath / "docs/reference/audit.schema.json").read_bytes())
    assert published["title"] == document["schema"] == AUDIT_SCHEMA
    jsonschema.validate(document, published)
    read = msgspec.convert(document, Audit)
    assert {outcome.rule for outcome in read.rules} == {rule.name for rule in all_rules()}
    assert any(finding.code == "stalls" and finding.profile == "stalls" for finding in read.findings)
    assert any(missing.rule == "cpus_beyond" and missing.profile == "bare" for missing in read.not_checked)


def test_the_command_in_its_last_line_leaves_out_what_cannot_be_checked(folder):
    first = audit(folder, "bare.json")
    hint = first.stdout.splitlines()[-1]
    words = shlex.split(hint[hint.index("kit audit") :])[2:]
    assert (first.return_value, audit(folder, *words).return_value) == (5, 0)
    assert "--without" not in audit(folder, "quiet.json", "--rule", QUIET).stdout


def test_every_rule_and_every_finding_has_its_section_and_sentence(request):
    docs = Path(request.config.rootpath) / "docs"
    page = runpy.run_path(str(docs / "rules_index.py"))["rules_page"]()  # raises where a section is missing
    assert page == (docs / "reference/audit/index.md").read_text(), "run: make reference"
    assert {code for rule in all_rules() for code in rule.explains} == sentences().keys()
    assert {rule.remedy for rule in all_rules()} - {None} <= REMEDIES.keys()


def test_like_findings_are_one_line_with_their_number_and_names(tmp_path):
    def shown_by(built, rule):
        b.write(tmp_path / "run.json", built)
        return " ".join(audit(tmp_path, "run.json", "--rule", rule).stdout.split())

    ids = [f"0000:0{index}:00.0" for index in range(8)]
    boards = [
        Accelerator(
            name=f"gpu {index}", device_id=bus, power_cap_default_w=700.0, power_cap_w=300.0 if index else 700.0
        )
        for index, bus in enumerate(ids)
    ]
    built = b.profile(b.group("mlp train", b.member("torch", device="gpu", launch={"device_ids": ids})))
    built.state = replace(built.state, before=b.changed(built.state.before, device_facts(boards)))
    shown = shown_by(built, "cap-below-default")
    assert "1 warning (7 GPUs)" in shown and shown.count("cap-below-default") == 1
    assert "7 GPUs are affected, worst first: gpu 1, gpu 2, gpu 3, gpu 4, gpu 5, gpu 6, gpu 7" in shown
    stalling = {"mlp": 0.4, "cnn": 0.3, "rnn": 0.0}
    groups = [b.group(net, b.member("torch", 2.0, net, stall=stall)) for net, stall in stalling.items()]
    shown = shown_by(b.profile(*groups), "stalls")
    assert "2 of 3 cells are affected, worst first: mlp (torch, train, batch 128), cnn (torch" in shown
