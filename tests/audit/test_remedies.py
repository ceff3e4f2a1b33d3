"""Remedies: each has words, and each command in them is one that can be run as it stands."""

import re
import shlex

import click
import profile_builder as b
import pytest
from asking import asked
from test_rules import ROWS, Variant, cells, reason

from kit.audit.audit import audit, findings_of
from kit.audit.remedies import REMEDIES, TCMALLOC, run_command, with_command
from kit.audit.rule import all_rules
from kit.audit.subject import MeasuredRun
from kit.cli import VERBS, app
from kit.cli.run_and_selftest import parse_request
from kit.compare.compare import compare_within
from kit.compare.notes import read_run
from kit.profile.program_source import ProgramSource
from kit.report.audit_report import remedy
from kit.report.headline_and_notes import explanations
from kit.suites.plan import plan_of

COMMAND = re.compile(r"`([^`]+)`")
# What a remedy may put before `kit run`, with its own arguments.
BEFORE_RUN = re.compile(r"(env -u \S+|taskset -c [\d,]+|numactl --cpunodebind=0 --membind=0|\w+=.+?) (?=kit run )")
# Programs of others, by what their manuals say.
OF_OTHERS = re.compile(
    r"(sudo )?nvidia-smi( -i \S+)?( -q -d [A-Z_,]+| -pl \d+| -lgc \d+| -mig 0| --gpu-reset( -i \S+)?"
    r"| --format=csv --query-gpu=[a-z.,]+)?|apt install [a-z0-9-]+|sudo timedatectl set-ntp true"
    r"|sudo cpupower frequency-set --max 2GHz|sudo strace -c -f -p \$\(pgrep -n -f kit\.worker\)"
)


def commands_of(finding, file):
    """The commands in the words of a finding's remedy."""
    words = remedy(finding, str(file)) or ""
    assert "{" not in words and "(run " not in words, words
    return COMMAND.findall(words)


def check(command, file, cells):
    """Check that a command is complete; `kit run` plans at least one of the cells."""
    rest = BEFORE_RUN.sub("", command)
    if OF_OTHERS.fullmatch(rest):
        return
    kit, verb, *words = shlex.split(rest)
    assert kit == "kit" and verb in VERBS, command
    if verb == "launch":
        app.get_command(click.Context(app), verb).make_context(verb, [*words])
    elif verb != "run":
        app.get_command(click.Context(app), verb).make_context(verb, [*words])
        # The file of the finding, or the one that an earlier command of the remedy writes.
        assert {str(file), *(path.name for path in file.parent.glob("*.json"))} & {*words}
    elif "--resume" in words:
        assert words == ["--resume", "--out", str(file)]
        parse_request(words)
    elif any(cell.workload in ("mlp", "cnn", "matmul", "triad", "empty") for cell in cells):
        planned = plan_of(parse_request(words), lambda line: None).cells
        assert {cell.key_without(("variant", "batch", "threads", "precision", "feed")) for cell in planned} & {
            cell.key_without(("variant", "batch", "threads", "precision", "feed")) for cell in cells
        }, command


@pytest.mark.parametrize("planted", [pytest.param(row.values, id=row.id) for row in ROWS])
def test_each_command_of_a_remedy_can_be_run_as_it_stands(tmp_path, planted, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rule, plant, *_ = planted
    built = plant()
    many, file = built if isinstance(built, list) else [built], tmp_path / "run 1.json"
    file.touch()
    for finding in asked([rule], *many).findings:
        for command in commands_of(finding, shlex.quote(str(file))):
            check(command, file, [result.cell for built in many for result in built.cells])
            words = shlex.split(command)
            if "--out" in words:
                (tmp_path / words[words.index("--out") + 1]).touch()


def test_every_remedy_is_advised_by_a_rule_and_has_words():
    usual = {rule.remedy for rule in all_rules()} - {None}
    assert usual <= REMEDIES.keys()
    source = "".join(rule.check.__globals__["__spec__"].loader.get_data(rule.check.__code__.co_filename).decode()
                     for rule in {rule.check.__module__: rule for rule in all_rules()}.values())  # fmt: skip
    helpers = {"larger_batch", "try_variant", "quiet_machine_alone"}  # made in kit.audit.remedies
    assert {code for code in REMEDIES if f'"{code}"' not in source} - helpers == set()


@pytest.mark.parametrize(("threads", "code"), [(2, "quiet_machine"), (1, "quiet_machine_alone")])
def test_one_thread_is_not_advised_to_a_run_that_has_one(threads, code):
    advised = with_command(reason("quiet_machine"), [b.cell("torch", threads=threads)], {})
    assert advised.code == code and f"--threads {threads}" in advised.values["run"]


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({}, "--workload mlp --backend torch --task train --batch 128 --compile-mode eager"),
        ({"device": "gpu", "precision": "tf32"}, "--device gpu"),
        ({"workload": "dblstm", "parameters": {"layers": 1, "units": 64}}, "--parameter layers=1 --parameter units=64"),
        ({"threads": 2, "feed": "host", "devices": 2}, "--threads 2"),
    ],
)
def test_a_cell_is_measured_again_by_its_command(axes, words):
    cell = b.cell("torch", **axes)
    command = run_command([cell], {})
    assert words in command
    plan = plan_of(parse_request(shlex.split(command)[2:]), lambda line: None)
    assert [planned.key for planned in plan.cells] == [cell.key]


def test_a_programs_command_names_its_file(tmp_path):
    file = tmp_path / "my model.py"
    file.write_text("def deep(batch, device): ...\n")
    source = ProgramSource(path=str(file), function="deep", takes_task=False, sha256="a" * 64)
    cell = b.cell("program", "net", precision="own", compile_mode="own", feed="own", batch=8)
    plan = plan_of(parse_request(shlex.split(run_command([cell], {"net": source}))[2:]), lambda line: None)
    assert [planned.key for planned in plan.cells] == [cell.key]


FAULTS = {"process.user_ns": 18e6, "process.system_ns": 18e6, "process.minor_faults": 8000, "process.cpu_ns": 36e6}


def faulting(*members, **more):
    return cells(*(b.member("torch", 20.0, "cnn", counters=FAULTS, **member) for member in members), rounds=8, **more)


@pytest.mark.parametrize(
    ("variants", "environment", "is_advised"),
    [
        ([], {}, True),
        ([Variant(name="tcmalloc", env={"LD_PRELOAD": "libtcmalloc_minimal.so.4"})], {}, False),
        ([Variant(name="keeps", env={"MALLOC_TRIM_THRESHOLD_": "1000000000"})], {}, False),
        ([Variant(name="fast", env={"OMP_WAIT_POLICY": "active"})], {}, True),
        ([], {"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}, False),
    ],
)
def test_another_allocator_is_not_advised_where_the_run_has_one(variants, environment, is_advised):
    members = [{"launch": {"environment": environment}}, *({"variant": variant.name} for variant in variants)]
    built = faulting(*members, variants=variants, compare=["variant"])
    findings = asked(["page_faults"], built).findings
    assert findings and all((finding.remedy is not None) == is_advised for finding in findings)
    group = read_run("run", built)
    shown = [finding.remedy for finding in findings_of(group) if finding.rule == "page_faults"]
    assert all((what is not None) == is_advised for what in shown)
    if is_advised:
        assert f"--variant {TCMALLOC['variant']}`" in remedy(findings[0])


OUT_OF_MEMORY = dict.fromkeys(range(3), reason("out_of_device_memory", type="E", message="m"))


@pytest.mark.parametrize(
    ("is_interrupted", "failed", "begins"),
    [
        (False, True, "Fix the failure (`kit show a.json`), then measure the cell again: `kit run --workload"),
        (True, True, "Fix the failure (`kit show a.json`), then measure the cell again: `kit run --workload"),
        (True, False, "Measure the rest: `kit run --resume --out a.json`"),
        (False, False, "Measure again: `kit run --workload mlp --backend jax"),
    ],
)
def test_only_what_an_interrupted_run_did_not_reach_is_resumed(is_interrupted, failed, begins):
    built = cells(b.member("torch"), b.member("jax", failed_rounds=OUT_OF_MEMORY if failed else {}))
    built.interrupted = is_interrupted
    if not failed:
        built.cells[1].launches = []
    (finding,) = audit(
        [MeasuredRun("a", built)], [rule for rule in all_rules() if rule.name == "missing_cell"]
    ).findings
    assert remedy(finding).startswith(begins)


def test_the_remedies_of_a_comparison_name_its_file():
    built = faulting({"stall": 0.25})
    (group,) = compare_within("a", built, findings=findings_of(read_run("a", built))).groups
    assert any("`kit compare my/a.json --wide`" in (line.remedy or "") for line in explanations(group, "my/a.json"))


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--figure", r"([0-9.]+) tokens/s", "--better", "more", "--unit", "tokens/s", "--ignore-failure", "1,-15"],
        ["--figure", "json:a.b", "--prepare", "sync -f 'a b'", "--ignore-failure", "all"],
        ["--shell", "--prepare", "cat x > /dev/null"],
    ],
)
def test_commands_are_measured_again_as_they_were(options):
    given = ["--command", "old=sleep '0.1 ' 1", "--command", "new=true {port}", "--serve", "new=sleep {port}"]
    plan = plan_of(parse_request([*given, *options]), lambda line: None)
    words = shlex.split(run_command(plan.cells, plan.suite.programs))
    assert len({*words}) == len(words) - (words.count("--command") - 1), "an option of all is given once"
    assert plan_of(parse_request(words[2:]), lambda line: None).suite.programs == plan.suite.programs
