"""Every rule as a table: what is planted, what the rule finds of it with which values, and what it lacks."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import profile_builder as b
import pytest
from asking import RULES, asked, outcomes
from click.testing import CliRunner
from msgspec.structs import replace

from kit.cli import app
from kit.profile.cell import Variant
from kit.profile.facts import Accelerator, device_facts
from kit.profile.fields import reason
from kit.profile.instruments import Energy, SensorResponse
from kit.profile.schema import Compilations, DeviceEvents, Fit, Parity, StateSpan, Threads, ThreadsOnCpus, WhatRan

MS, S = b.MS, b.S
BUS = "0000:65:00.0"
OUTPUTS = Path(__file__).parents[1] / "golden/outputs"
ROWS = []


def row(rule, plant, wanted="", lacks="", **values):
    """A row of the table: findings as "severity code backend", codes of what is lacked, values of the first finding."""
    ROWS.append(pytest.param(rule, plant, wanted, lacks, values, id=f"{rule}-{len(ROWS)}"))


def cells(*members, rounds=3, cycles=3, drift=0.0, **more):
    return b.profile(b.group("mlp train", *members), rounds=rounds, cycles=cycles, drift=drift, **more)


def both(device="gpu", change=None, rounds=3, **launch):
    """PyTorch and JAX with these fields in each launch."""
    return cells(*(b.member(name, **b.EXACT, device=device, launch=launch, change=change) for name in ("torch", "jax")),
                 rounds=rounds)  # fmt: skip


def twice(severity, code):
    return f"{severity} {code} torch, {severity} {code} jax"


# --- The work that a step did.


def operation(name, step_ms, backend="torch", **parameters):
    plan = b.member(backend, step_ms, name, task="infer", batch=1, parameters=parameters)
    return b.group(f"{name} {backend}", plan)


def product(gflop_s, backend="torch", change=None, **cell):
    made = operation("matmul", 2e3 / gflop_s, backend, n=1000)
    made.members[0].change, made.members[0].cell = change, replace(made.members[0].cell, **cell)
    return made


def network(gflop_s, backend="torch", flops=3 * b.MLP_FLOPS - 2 * 128 * 784 * 512, **cell):
    return b.group("g", b.member(backend, flops / gflop_s * 1e-6, **cell))


def own(step_ms):
    return b.group("own", b.member("program", step_ms, "mine", precision="own", compile_mode="own", feed="own"))


def beside(*groups):
    return lambda: b.profile(*groups, rounds=3, cycles=3, drift=0.0)


CONV = 3 * 2 * 128 * (26 * 26 * 32 * 9 + 24 * 24 * 64 * 9 * 32 + 9216 * 128 + 1280)
QUICK, SLOW = operation("empty", 0.0016), operation("empty", 0.1, "tensorflow")
ABOVE = "{} above_ceiling torch"
for share, severity in ((0.5, None), (1.2, None), (2.0, "warning"), (4.0, "bad"), (1e4, "bad")):
    evidence = {"reached_gflop_s": share * 200, "operation": "matmul 1000, float32"} if severity else {}
    row(
        "above_ceiling",
        beside(network(share * 200), product(200)),
        ABOVE.format(severity) if severity else "",
        **evidence,
    )
disturbed = product(200, change=b.beside_others(0.6))
row("above_ceiling", beside(network(800), disturbed), lacks="ceilings_disturbed")
row("above_ceiling", beside(network(2e6), disturbed), ABOVE.format("bad"))
# One quiet block shows what the machine reaches.
quiet_once = product(200, change=b.beside_others(0.6, lambda _: (0, 1), slow=2.0))
row("above_ceiling", beside(network(800), quiet_once), ABOVE.format("bad"))
row("above_ceiling", beside(network(900, "jax"), product(200, "jax")), "bad above_ceiling jax")
row("above_ceiling", beside(network(900, "jax"), product(200, "jax"), product(950)))
for other in ({"device": "gpu"}, {"precision": "bfloat16"}):
    row("above_ceiling", beside(network(900, "jax"), product(950, **other)), lacks="ceilings_not_measured")
# Winograd computes a convolution with a quarter of the products.
row("above_ceiling", beside(network(600, flops=CONV, workload="cnn"), product(200)))
row("above_ceiling", beside(network(2000, flops=CONV, workload="cnn"), product(200)), ABOVE.format("bad"))
row("above_ceiling", beside(own(0.0006), QUICK, SLOW), "warning shorter_than_dispatch program")
for step_ms in (0.002, 3.0):
    row("above_ceiling", beside(own(step_ms), QUICK, SLOW), lacks="work_not_known")
short = b.group("g", b.member("tensorflow", 0.01, batch=1, task="infer"))
row("above_ceiling", beside(short, product(1e6), QUICK, SLOW), "bad shorter_than_dispatch tensorflow")
row("above_ceiling", beside(short, product(1e6), QUICK))
row("above_ceiling", beside(network(2e6)), lacks="ceilings_not_measured")
row("above_ceiling", beside(own(3.0), product(200)), lacks="ceilings_not_measured")
row(
    "above_ceiling", beside(b.group("g", b.member("torch", 3.0, "somebodys_net")), product(200)), lacks="work_not_known"
)


# --- Steps that stay the same.


def growing(factor, in_blocks=False, disturbed=None, **change):
    """For a member's `change`: its step becomes so many times as long within a launch, or within each block.

    `disturbed`: in one round, the block of this number takes five times as long.
    """

    def grow(launch):
        blocks = launch.blocks
        count = len(blocks.cycle)
        for index in range(count):
            place = 0 if in_blocks else index
            slower = 5 if disturbed == index and launch.round == 1 else 1

            def at(part, place=place, slower=slower):
                return slower * factor ** (part if in_blocks else (place + part) / count)

            blocks.early_ns[index] = round(blocks.median_ns[index] * at(1 / 6))
            blocks.late_ns[index] = round(blocks.median_ns[index] * at(5 / 6))
            blocks.duration_ns[index] = round(blocks.duration_ns[index] * at(1 / 2))
            blocks.median_ns[index] = round(blocks.median_ns[index] * at(1 / 2))
            blocks.span_ns[index] = blocks.duration_ns[index] * 2
        for index in range(1, count):
            blocks.begin_ns[index] = max(blocks.begin_ns[index], blocks.begin_ns[index - 1] + blocks.span_ns[index - 1])

    return grow


def grown(factor, rounds=3, cycles=2, beside=1.0, alone=False, **how):
    program = b.member("torch", 3.0, noise=0.01, change=growing(factor, **how))
    others = () if alone else (b.member("jax", 2.0, noise=0.01, change=growing(beside)),)
    return cells(program, *others, rounds=rounds, cycles=cycles)


GROWS, SHRINKS = "warning step_grows torch", "warning step_shrinks torch"
for cycles in (1, 2, 3, 6, 12):
    row("step_grows", partial(grown, 1.0, cycles=cycles))
    row("step_grows", partial(grown, 1.5, cycles=cycles), GROWS)
for cycles in (2, 12):
    row("step_grows", partial(grown, 1 / 1.5, cycles=cycles), SHRINKS)
    row("step_grows", partial(grown, 1.6, cycles=cycles, disturbed=0), GROWS)
    row("step_grows", partial(grown, 1.6, cycles=cycles, disturbed=1), GROWS)
    row("step_grows", partial(grown, 1.0, cycles=cycles, disturbed=1))
    row("step_grows", partial(grown, 1.5, cycles=cycles, in_blocks=True), GROWS, stretch="block")
    # What the machine does to both; more than it does; and what may be the machine's beside nothing.
    row("step_grows", partial(grown, 1.3, cycles=cycles, beside=1.3))
    row("step_grows", partial(grown, 1.2, cycles=cycles, alone=True), "note step_grows torch")
    row("step_grows", partial(grown, 1.5, cycles=cycles, alone=True), GROWS)
row("step_grows", partial(grown, 2.0, beside=2.0), "warning step_grows torch, warning step_grows jax")
row("step_grows", partial(grown, 2.0, rounds=2), lacks="too_few_rounds")


def old(factor, cycles):
    def change(launch):
        growing(factor)(launch)
        launch.blocks.early_ns, launch.blocks.late_ns, launch.numbers = [], [], None

    return cells(b.member("torch", 3.0, noise=0.01, change=change), rounds=3, cycles=cycles)


row("step_grows", partial(old, 1.5, 12), GROWS)
row("step_grows", partial(old, 1.5, 3), lacks="not_recorded")
for rule_name in ("vanished_loss", "denormals"):
    row(rule_name, partial(old, 1.0, 3), lacks="not_recorded")


def computed(task="train", backend="program", device="cpu", **numbers):
    plan = b.member(backend, 3.0, task=task, device=device)
    return lambda: cells(replace_launch(plan, numbers=b.numbers(plan.cell, **numbers)))


def replace_launch(plan, **launch):
    plan.launch = launch
    return plan


row("vanished_loss", computed())
row("vanished_loss", computed(blocks_begin="left", last_block_loss=2.4e-6), "")
row("vanished_loss", computed(blocks_begin="left", last_block_loss=0.0), "warning vanished_loss program", last_loss=0.0)
row("vanished_loss", computed(blocks_begin="left", last_block_loss=-1e-9), "warning vanished_loss program")
row("vanished_loss", computed(last_block_loss=0.0), "note vanished_loss program")
row("vanished_loss", computed(first_step_loss=0.0, last_block_loss=0.0), "")
nothing = {"first_step_loss": None, "last_block_loss": None}
row("vanished_loss", computed(**nothing, loss_reason=reason("step_returns_no_loss")), lacks="step_returns_no_loss")
row("vanished_loss", computed("infer"))
row("denormals", computed(denormal_share=0.0009))
for backend, severity in (("program", "warning"), ("torch", "warning"), ("jax", "note"), ("tensorflow", "note")):
    row("denormals", computed(backend=backend, denormal_share=0.16), f"{severity} denormals {backend}", denormal_pct=16)
row("denormals", computed("infer", denormal_share=0.5), "warning denormals program")
row("denormals", computed(backend="torch", device="gpu", denormal_share=0.5), "note denormals torch")
unknown = {"denormal_share": None, "denormal_reason": reason("state_not_found", most=1 << 24)}
row("denormals", computed(**unknown), lacks="state_not_found")
row("loss_not_finite", computed(was_not_finite=True), "bad loss_not_finite program", launches=3, of_launches=3)
row("loss_not_finite", computed())


def fits(ratio, rounds):
    def waits(launch):
        steps_ns = np.divide(launch.blocks.duration_ns, launch.blocks.steps)
        references = [steps_ns[0] / ratio, *(steps_ns / ratio)]
        launch.fit = Fit(epochs=1, updates=100, reference_ns=references, test_ns=None)

    return cells(b.member("torch", 3.0, task="fit", feed="host", noise=0.0, change=waits), rounds=rounds)


row("input_bound", partial(fits, 1.05, 3))
for ratio, rounds, severity in ((1.15, 3, "note"), (1.5, 3, "warning"), (1.5, 1, "note")):
    row("input_bound", partial(fits, ratio, rounds), f"{severity} input_bound torch", input_pct=100 * (1 - 1 / ratio))


def with_losses(odd=0.0, names=("tensorflow", "torch", "jax")):
    built = cells(*map(b.member, names))
    for result, factor in zip(built.cells, (1, 1, 1 + odd), strict=False):
        result.launches[0].parity = Parity(losses=[factor, 0.5 * factor], weights_sha256="w", batches_sha256="b")
    return built


def on_both(away, **changes):
    members = [b.member("torch", launch={"parity": b.losses(shift)} | changes, device=device)
               for device, shift in (("cpu", 0.0), ("gpu", away))]  # fmt: skip
    return cells(*members)


row("parity", with_losses)
row("parity", partial(with_losses, 1e-3), "bad parity jax")
row("parity", partial(with_losses, names=("torch",)), lacks="no_parity")
row("parity_with_cpu", partial(on_both, 5e-4))
row("parity_with_cpu", partial(on_both, 5e-3), "bad parity_with_cpu torch", difference=5e-3)
row("parity_with_cpu", partial(on_both, 0.0, parity=None), lacks="no_parity")
row("parity_with_cpu", both)
for rule in ("loss_not_finite", "missing_cell", "empty_input", "sampling_gaps"):
    row(rule, b.profile)
MLP_FLOPS = {"flops_asked": 5e8, "flops": 1e5}


def mode_ran(runs, backend="torch", compile_mode="compile", **launch):
    launch = {"ran": WhatRan(runs=runs)} | launch
    return partial(cells, b.member(backend, compile_mode=compile_mode, launch=launch))


def off(switch, count=0, **more):
    return Compilations(count=count, reason=reason("compiler_switched_off", by=switch), **more)


NONE_COMPILED = {"recompiles": Compilations(count=0, before=0)}
NOT_COMPILED = "bad not_compiled "
row("not_compiled", mode_ran({"inductor": 2, "operation": 40}))
row("not_compiled", mode_ran({"operation": 79}), NOT_COMPILED + "torch", by="TorchInductor", launches=3)
# TorchDynamo captured it, and gave it to another compiler than Inductor.
row("not_compiled", mode_ran({"dynamo": 1, "operation": 79}), NOT_COMPILED + "torch")
row("not_compiled", mode_ran({}, **NONE_COMPILED), NOT_COMPILED + "torch", by="TorchInductor")
switched = {"recompiles": off("TORCHDYNAMO_DISABLE", before=0)}
row("not_compiled", mode_ran({"operation": 79}, **switched), "bad compiler_off torch", switch="TORCHDYNAMO_DISABLE")
for runs, wanted in (({"operation": 9}, ""), ({"operation": 9, "inductor": 1}, "warning compiled_nonetheless torch")):
    row("not_compiled", mode_ran(runs, compile_mode="eager"), wanted)
for mode, runs, wanted in (
    ("eager", {"operation": 201}, ""),
    ("eager", {"operation": 201, "graph": 2}, ""),
    ("eager", {"xla": 1}, "warning compiled_nonetheless tensorflow"),
    ("graph", {"graph": 1}, ""),
    ("graph", {"graph": 1, "xla": 4}, "warning compiled_nonetheless tensorflow"),
    ("graph", {"operation": 201}, NOT_COMPILED + "tensorflow"),
    ("xla", {"xla": 1}, ""),
    ("xla", {"graph": 1}, NOT_COMPILED + "tensorflow"),
):
    row("not_compiled", mode_ran(runs, "tensorflow", mode), wanted)
row("not_compiled", mode_ran({}, "jax", "jit", **NONE_COMPILED), NOT_COMPILED + "jax", by="XLA")
# Another tracer may show what an accelerator runs.
on_gpu = b.member("tensorflow", compile_mode="xla", device="gpu", launch={"ran": WhatRan(runs={"graph": 1})})
row("not_compiled", partial(cells, on_gpu))
failed = {"ran": WhatRan(reason=reason("profiler_failed", error="E: x")), "recompiles": None}
row("not_compiled", mode_ran({}, **failed), lacks="profiler_failed")
row("not_compiled", mode_ran({}, ran=None, recompiles=Compilations(count=0)), lacks="not_recorded")
row("not_compiled", partial(cells, b.member("fake", compile_mode="other")))


def launched(torch, jax, device="gpu"):
    """PyTorch and JAX with so many launches in a step, and replays of graphs among them."""
    members = (
        b.member(
            name,
            **b.EXACT,
            device=device,
            launch={"ran": WhatRan(launches=known and known[0], graphs=known and known[1])},
        )
        for name, known in (("torch", torch), ("jax", jax))
    )
    return partial(cells, *members)


row("cuda_graphs_differ", launched((80, 0), (3, 1)), "warning cuda_graphs_differ torch", launches="torch: 80, jax: 3")
row("cuda_graphs_differ", launched((4, 2), (3, 1)))
row("cuda_graphs_differ", launched((80, 0), (95, 0)))
row("cuda_graphs_differ", launched((80, 0), None), lacks="not_recorded")
row("cuda_graphs_differ", launched(None, None, "cpu"))
newer = reason("newer_than_tested", title="PyTorch", version="2.16.0", tested="2.15")
row("newer_than_tested", partial(both, "cpu"))
row(
    "newer_than_tested", partial(both, "cpu", untested=newer), "note newer_than_tested", version="2.16.0", tested="2.15"
)


def program(**launch):
    member = b.member("program", 3.0, "mine", precision="own", compile_mode="own", feed="own", launch=launch)
    return partial(cells, member)


for rule in ("not_compiled", "work_left_out"):
    row(rule, program(ran=WhatRan(runs={"operation": 9}, flops=5e8)))
row(
    "not_compiled", program(recompiles=off("JAX_DISABLE_JIT")), "warning compiler_off program", switch="JAX_DISABLE_JIT"
)
row(
    "not_compiled",
    program(recompiles=Compilations(count=0, before=0, tried=2)),
    "warning compiler_failed program",
    tried=2,
)
row("not_compiled", program(recompiles=Compilations(count=0, before=1, tried=2)))
row("not_compiled", program(recompiles=Compilations(count=None, reason=reason("own_program"))), lacks="own_program")
row("work_left_out", program(ran=WhatRan(runs={"inductor": 1}, **MLP_FLOPS)), "bad work_left_out program", flops=1e5)
folded = WhatRan(runs={"xla": 1}, arguments_b=0, **MLP_FLOPS)
row("work_left_out", program(ran=folded), "bad constant_inputs program")
row("work_left_out", program(ran=WhatRan(runs={"inductor": 1}, flops=3e8, flops_asked=5e8)))
row("work_left_out", program(ran=WhatRan(runs={"inductor": 1}, flops_asked=5e8)))
pruned = WhatRan(runs={"graph": 1}, products=0, products_asked=4)
row("work_left_out", program(ran=pruned), "bad products_left_out program", products_asked=4)
row("work_left_out", program(ran=replace(pruned, products=2)))
row("work_left_out", program(ran=None), lacks="not_recorded")
row("work_left_out", partial(cells, b.member("torch")))

LOWERED = "warning precision_lowered torch"
for settings, wanted in (
    ({"float32_matmul_precision": "highest", "mkldnn.matmul.fp32_precision": "ieee"}, ""),
    ({"float32_matmul_precision": "high"}, LOWERED),
    ({"float32_matmul_precision": "highest", "mkldnn.conv.fp32_precision": "bf16"}, LOWERED),
    ({"float32_matmul_precision": "highest", "ONEDNN_DEFAULT_FPMATH_MODE": "BF16"}, LOWERED),
    ({"float32_matmul_precision": "highest", "DNNL_DEFAULT_FPMATH_MODE": "STRICT"}, ""),
    ({"tensor_float_32": "True"}, LOWERED),
    ({"tensor_float_32": "False", "TF_SET_ONEDNN_FPMATH_MODE": "BF16"}, LOWERED),
    ({"jax_default_matmul_precision": "None"}, ""),
    ({"jax_default_matmul_precision": "bfloat16"}, LOWERED),
):
    row("precision_lowered", partial(cells, b.member("torch", launch={"settings": settings})), wanted)
for settings, wanted in (
    ({"jax_default_matmul_precision": "None"}, LOWERED),
    ({"float32_matmul_precision": "highest (NVIDIA_TF32_OVERRIDE=1)"}, LOWERED),
    ({"float32_matmul_precision": "high (NVIDIA_TF32_OVERRIDE=0)"}, ""),
):
    row("precision_lowered", partial(cells, b.member("torch", device="gpu", launch={"settings": settings})), wanted)
row("precision_lowered", partial(cells, b.member("torch", launch={"settings": {}})), lacks="not_recorded")
tf32 = b.member("torch", precision="tf32", device="gpu", launch={"settings": {"float32_matmul_precision": "high"}})
row("precision_lowered", partial(cells, tf32))
row("recompiles", partial(both, "cpu", recompiles=Compilations(count=2)), twice("warning", "recompiles"), recompiles=6)


# --- What a framework was given, or obeyed, and another was not.

OMP1 = Variant(name="omp1", env={"OMP_NUM_THREADS": "1"})


def threads(reported=2, used=None, requested=2):
    return Threads(requested=requested, reported=reported, reason=None, cpus=[0, 1], used=used)


def given(backend, environment=(), of_threads=None, **more):
    known = None if environment is None else dict(environment)
    launch = {"environment": known, "threads": of_threads or threads(), **more.pop("launch", {})}
    return b.member(backend, launch=launch, **more)


def omp1(backend, obeys, used):
    return given(backend, OMP1.env if obeys else {}, threads(1 if obeys else None, used), variant="omp1")


def of(*members, **more):
    return lambda: cells(*members, **more)


FAIR = ("variable_binds_one", "threads_differ", "allocator_differs")
equals = [given(name) for name in ("torch", "tensorflow", "jax")]
old = [given(name, None, threads(None)) for name in ("torch", "jax")]
for rule in FAIR:
    row(rule, of(*equals))
    row(rule, of(given("torch"), omp1("torch", True, 1), variants=[OMP1]))
    row(rule, of(*old), lacks="not_recorded")
obeying = [omp1("torch", True, 1), omp1("tensorflow", False, 5), omp1("jax", False, 4)]
row("variable_binds_one", of(*obeying, variants=[OMP1]), "warning variable_binds_one torch", variable="OMP_NUM_THREADS",
    value="1", set_by="variant omp1", obeys="torch", ignores="tensorflow, jax",
    threads="torch: 1, tensorflow: 5, jax: 4")  # fmt: skip
# A thread more in a pool that ignores it holds nobody back.
level = [omp1("torch", True, 8), omp1("tensorflow", False, 9)]
row("variable_binds_one", of(*level, variants=[OMP1]), "note variable_binds_one torch")
flags = {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}
machine_of_flags = b.identity(
    facts={"environment.XLA_FLAGS": flags["XLA_FLAGS"], "environment_set_by.XLA_FLAGS": "container"}
)
row("variable_binds_one", of(given("torch"), given("jax", flags), identity=machine_of_flags),
    "note variable_binds_one jax", set_by="container", sets="compilation")  # fmt: skip
# A setting that switches something off, or sets precision, changes what is compared; and so do other threads.
for variables, obeys, severity, sets in (
    ({"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}, "jax", "warning", "compilation"),
    ({"TORCHDYNAMO_DISABLE": "1"}, "torch", "warning", "compilation"),
    ({"TORCHDYNAMO_DISABLE": "0"}, "torch", "note", "compilation"),
    ({"TORCHDYNAMO_SUPPRESS_ERRORS": "true"}, "torch", "warning", "compilation"),
    ({"TF_SET_ONEDNN_FPMATH_MODE": "BF16"}, "tensorflow", "warning", "precision"),
    ({"TF_SET_ONEDNN_FPMATH_MODE": "STRICT"}, "tensorflow", "note", "precision"),
    ({"JAX_ENABLE_X64": "True"}, "jax", "warning", "precision"),
    ({"TF_ENABLE_ONEDNN_OPTS": "0"}, "tensorflow", "note", "kernels"),
    ({"GLOO_SOCKET_IFNAME": "lo"}, "torch", "", ""),
    ({"JAX_COMPILATION_CACHE_DIR": "~/c"}, "jax", "", ""),
    ({"JAX_LOG_COMPILES": "1"}, "jax", "note", "settings"),
):  # fmt: skip
    planted = [given(name, variables if name == obeys else {}) for name in ("torch", "jax", "tensorflow")]
    row("variable_binds_one", of(*planted), severity and f"{severity} variable_binds_one {obeys}",
        **({"sets": sets} if sets else {}))  # fmt: skip
for used, severity in ((8, "warning"), (3, "note")):
    for name, value in (("JAX_NUM_CPU_DEVICES", "8"), ("XLA_FLAGS", "--xla_force_host_platform_device_count=8")):
        planted = given("torch", {}, threads(2, 2)), given("jax", {name: value}, threads(None, used))
        row("variable_binds_one", of(*planted), f"{severity} variable_binds_one jax", sets="devices")


def on_cpus(*cpus, requested=2, **more):
    """Threads that computed, each with the CPUs that it may run on."""
    placement = [ThreadsOnCpus(threads=1, cpus=allowed) for allowed in cpus]
    return Threads(requested=requested, reported=2, reason=None, cpus=[0, 1], placement=placement or None, **more)


for environment, known, wanted, values in (
    ({"GOMP_CPU_AFFINITY": "0"}, on_cpus([0], [0]), "warning threads_bound torch",
     {"threads": 2, "cpus": 1, "allowed": 2, "variables": "GOMP_CPU_AFFINITY=0"}),
    ({"OMP_PLACES": "{1}", "OMP_NUM_THREADS": "2"}, on_cpus([1], [1], [1]), "warning threads_bound torch",
     {"variables": "OMP_PLACES={1}"}),
    ({"OMP_WAIT_POLICY": "active"}, on_cpus([0], [0]), "warning program_binds_threads torch", {}),
    ({"OMP_PROC_BIND": "true"}, on_cpus([0], [1]), "", {}),
    ({}, on_cpus([0, 1], [0, 1], [0, 1]), "", {}),
    ({}, on_cpus([0], requested=1), "", {}),
):  # fmt: skip
    row("threads_bound", of(given("torch", environment, known)), wanted, **values)
row("threads_bound", of(given("torch")), lacks="not_recorded")
idle = on_cpus(used_reason=reason("threads_hardly_ran", busiest_ns=1, needed_ns=2))
row("threads_bound", of(given("torch", {}, idle)), lacks="threads_hardly_ran")
programs = [given("program", workload=name) for name in ("mine", "yours")]
row("variable_binds_one", of(*programs), lacks="own_programs_read_what_they_like")
for torch, jax, severity, listed in (
    (threads(2), threads(2), "", ""),
    (threads(1), threads(2), "warning", "torch: 1, jax: 2"),
    (threads(None, 1), threads(2, 5), "warning", "torch: 1, jax: 5"),
    (threads(None, 2), threads(2, 5), "", ""),  # pools differ in who waits
    # One was asked for: what hands work over to it is no second one that computes.
    (threads(1, 1, 1), threads(None, 2, 1), "", ""),
    (threads(1, 1, 1), threads(1, 2, 1), "", ""),
    (threads(2, 1), threads(2, 2), "note", "torch: 1, jax: 2"),
):
    differs = {"wanted": f"{severity} threads_differ torch", "threads": listed} if listed else {}
    row("threads_differ", of(given("torch", {}, torch), given("jax", {}, jax)), **differs)
# Sides are called as the rows of their table are.
mine = given("program", {}, threads(1, 1, 1), workload="mine"), given("program", {}, threads(2, 2), workload="yours")
row("threads_differ", of(*mine, compare=["workload"]), "warning threads_differ program", threads="mine: 1, yours: 2")
sweep = given("torch", {}, threads(1, 1, 1), batch=8), given("jax", {}, threads(2, 2), batch=64)
row("threads_differ", of(*sweep, compare=["backend", "batch"]), "warning threads_differ torch",
    threads="torch batch 8: 1, jax batch 64: 2")  # fmt: skip
for torch, jax, wanted in (
    ("highest", "highest", ""),
    ("highest", "None", "warning precision_differs jax"),  # JAX' own default is less
    ("high (NVIDIA_TF32_OVERRIDE=0)", "None (NVIDIA_TF32_OVERRIDE=0)", ""),
    ("high", "tensorfloat32", ""),
):
    settings = {"torch": {"float32_matmul_precision": torch}, "jax": {"jax_default_matmul_precision": jax}}
    members = [given(name, device="gpu", precision="default", launch={"settings": known})
               for name, known in settings.items()]  # fmt: skip
    row("precision_differs", of(*members), wanted)
row("precision_differs", of(given("torch", device="gpu"), given("jax", device="gpu")), lacks="not_recorded")
several = [
    given(name, device="gpu", precision="default", batch=batch, launch={"settings": {switch: value}})
    for batch, name, switch, value in (
        (8, "torch", "float32_matmul_precision", "highest"),
        (64, "jax", "jax_default_matmul_precision", "None"),
    )
]
row("precision_differs", of(*several, compare=["backend", "batch"]), "warning precision_differs jax",
    settings="torch batch 8: highest, jax batch 64: None")  # fmt: skip
TCMALLOC = {"LD_PRELOAD": "libtcmalloc.so"}
for torch, jax, backends, listed in (
    (TCMALLOC, TCMALLOC, "", {}),
    ({"PYTORCH_ALLOC_CONF": "x:True"}, {}, "torch", {"settings": "PYTORCH_ALLOC_CONF=x:True"}),
    (TCMALLOC | {"OMP_PROC_BIND": "true"}, {}, "torch", {"settings": "LD_PRELOAD=libtcmalloc.so"}),
    ({"A_MALLOC": "1"}, {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, "torch jax", {}),
):
    expected = ", ".join(f"warning allocator_differs {name}" for name in backends.split())
    row("allocator_differs", of(given("torch", torch), given("jax", jax)), expected, **listed)


# --- Joules.

SOUND = {
    "sensor": "rapl.package-0", "joules_j": 950.0, "window_ns": 10 * S, "samples": 10_000, "block_ns": 11 * S,
    "tier": "device_counter", "updates": 400, "error_fraction": 0.01, "begin_ns": 5 * S, "steps": 500,
    "idle_before_w": 20.0, "idle_after_w": 20.5,
}  # fmt: skip
BOARD = {"sensor": "nvml.0.energy", "device_id": "0000:01:00.0"}
CLOCKS_UP = BOARD | {"idle_before_w": 72.0, "idle_after_w": 106.0, "idle_processes": 0}
POWER = BOARD | {"sensor": "nvml.0.power", "tier": "integrated_power"}
PSYS, NODE = ({"sensor": name, "joules_j": 1500.0} for name in ("rapl.psys", "cray.node.energy"))


def entry(**changes):
    return Energy(**(SOUND | changes))


def warming(c_per_s):
    return entry(**BOARD, warming_c_per_s=c_per_s)


def refused(code, **values):
    return entry(joules_j=None, window_ns=None, reason=reason(code, **values))


GAP = refused("energy_gap", gap_s=3.0, most_s=1.0)
for rule, severity, device, planted, sound in (
    ("few_updates", "warning", "gpu", [entry(**BOARD, updates=62)], [entry(**BOARD)]),
    ("sensor_broken", "warning", "cpu", [refused("constant_power", readings=100, power_w=90.0)], [entry()]),
    ("counter_reset", "warning", "cpu", [refused("counter_reset")], [entry()]),
    # Bursts of 2 ms a step, and a long block of 11 s whose steps take 2.1 and 2.02 ms.
    ("sustained_differs", "warning", "gpu", [entry(**BOARD, steps=5238)], [entry(**BOARD, steps=5446)]),
    ("counter_against_integral", "warning", "gpu", [entry(**BOARD), entry(**POWER | {"joules_j": 1030.0})],
     [entry(**BOARD), entry(**POWER | {"joules_j": 960.0})]),
    ("part_larger_than_whole", "bad", "cpu", [entry(), entry(**PSYS | {"joules_j": 800.0})], [entry(), entry(**PSYS)]),
    # The same processors by RAPL, together and one by one.
    ("part_larger_than_whole", "bad", "cpu", [entry(), entry(**NODE | {"joules_j": 800.0})],
     [entry(), entry(sensor="cray.cpu.energy"), entry(sensor="cray.cpu0.energy"), entry(**NODE)]),
    ("no_idle", "note", "cpu", [entry(idle_before_w=None, idle_after_w=None)], [entry()]),
    ("idle_not_idle", "warning", "cpu", [entry(idle_after_w=45.0)], [entry()]),
    # A board whose clocks stay up behind its last process; others' work on it, and a rise that no clock explains.
    ("idle_not_idle", "warning", "gpu", [entry(**CLOCKS_UP | {"idle_processes": 1})], [entry(**CLOCKS_UP)]),
    ("idle_not_idle", "warning", "gpu", [entry(**CLOCKS_UP | {"idle_after_w": 250.0})], [entry(**CLOCKS_UP)]),
    # A slope that one whole degree of a sensor may make is none.
    ("device_still_warming", "warning", "gpu", [warming(0.25)], [warming(0.13)]),
    ("device_still_warming", "warning", "gpu", [warming(-0.4)], [warming(0.0)]),
    ("modelled_beside_measured", "bad", "cpu", [entry(), entry(sensor="rapl.package-1", tier="modelled")],
     # A platform's meter beside a package's model is in no figure.
     [entry(tier="modelled"), entry(**PSYS)]),
):  # fmt: skip
    row(rule, partial(both, device, energy=planted), twice(severity, rule) if RULES[rule].scope == "cell" else "any")
    row(rule, partial(both, device, energy=sound))
row("device_still_warming", partial(both, energy=[entry(**BOARD)]), lacks="not_recorded")
row("device_still_warming", partial(both, "cpu", energy=[entry()]))
row("no_joules", partial(both, "cpu", energy=[GAP]), lacks="energy_gap")
row("no_joules", partial(both, "cpu", energy=[entry()]))
ONE_CPU = {"energy": [entry()], "threads": Threads(requested=1, reported=1, reason=None, cpus=[0])}
row(
    "scope_larger_than_worker", partial(both, "cpu", **ONE_CPU), twice("warning", "scope_larger_than_worker"), of_cpus=4
)


# --- The device, its waits, its turns, and its sensors.


def pipelined(latency=1.25):
    """Blocks of an accelerator: 10 steps a wait, and a step that is waited for takes longer."""

    def change(launch):
        count = len(launch.blocks.cycle)
        launch.blocks.per_wait, launch.blocks.waited_steps = [10] * count, [5] * count
        launch.blocks.median_ns = [round(latency * ns) for ns in launch.blocks.median_ns]

    return change


def clocks(device_ms):
    return {"device_events": DeviceEvents(steps=100, host_ns=2.0 * MS, device_ns=device_ms * MS)}


def turns(**why):
    return {"turns": "sequential", "turns_reason": reason(**why)}


for rule, severity, planted, sound in (
    ("wait_too_long", "warning", {"empty_wait_ns": MS // 4}, {"empty_wait_ns": MS // 10}),
    ("step_above_latency", "warning", {"change": pipelined(0.7)}, {"change": pipelined(0.9)}),
    ("device_clock", "bad", clocks(1.9), clocks(1.99)),
    ("targets_on_host", "warning", {"settings": {"targets": "CPU:0"}}, {"settings": {"targets": "cuda:0"}}),
    ("not_in_turns", "warning", turns(code="lack_of_device_memory", cell="mlp/jax", share_pct=30.0), {}),
    ("not_in_turns", "note", turns(code="exclusive_device", device="gpu"), {}),
):
    row(rule, partial(both, **{"change": pipelined()} | planted), twice(severity, rule))
    row(rule, partial(both, **{"change": pipelined()} | sound))
row("wait_too_long", partial(both, change=pipelined()), lacks="not_recorded")


def alone_beside(alone_ms, *, turns="blocks", rounds=4, **variant):
    together = [b.member(name, device="gpu", launch={"turns": turns}) for name in ("torch", "jax", "tensorflow")]
    alone = b.group("mlp train alone", b.member("torch", alone_ms, device="gpu", variant="alone"))
    variants = [Variant(name="default"), Variant(name="alone", **variant)]
    return b.profile(b.group("mlp train", *together), alone, rounds=rounds, cycles=4, drift=0.0, variants=variants)


for alone_ms in (1.6, 2.5):
    row("turns_cost", partial(alone_beside, alone_ms), "any", others=2)
row("turns_cost", partial(alone_beside, 2.1))
row("turns_cost", partial(alone_beside, 1.0, rounds=2), lacks="too_few_rounds")
row("turns_cost", partial(alone_beside, 1.0, turns="sequential"), lacks="too_few_rounds")
row("turns_cost", partial(alone_beside, 1.0, env={"XLA_FLAGS": "--fast"}))


def responded(name="energy", *, lag_ms=60, period_ms=100, read_ms=3.0, report=(), change=None, **fields):
    """A profile with the response of one sensor, of such a lag and such a period, read every 20 ms."""
    at_ns = [20 * MS * index for index in range(200)]
    known = {"delay_ns": 0, "window_ns": 2 * lag_ms * MS, "lag_ns": lag_ms * MS, "period_ns": period_ms * MS,
             "at_ns": at_ns, "values": [float(at // (period_ms * MS)) for at in at_ns], **fields}  # fmt: skip
    built, sensor = both(change=change), f"nvml.0.{name}"
    unit = {"energy": "J", "power": "W"}.get(name, "%")
    about = {"quantity": name, "unit": unit, "update_period_ns": 100 * MS, **dict(report)}
    built.sensors = [b.sensor(sensor, device_id="x", **about)]
    read_ns = round(read_ms * MS)
    built.responses = [SensorResponse(sensor=sensor, device_id="x", cell="matmul", read_ns=read_ns, **known)]
    return built


ALLOWED = {"report": {"lag_max_ns": 1500 * MS}}
for rule, planted, sound in (
    ("sensor_lag", {"lag_ms": 500}, {"lag_ms": 140}),
    ("sensor_lag", {"lag_ms": 1600, **ALLOWED}, {"lag_ms": 500, **ALLOWED}),
    ("sensor_period", {"period_ms": 200}, {"period_ms": 120}),
    ("sensor_period", {"name": "utilization", "period_ms": 200}, {"name": "utilization"}),
    ("sensor_reads", {"read_ms": 11.0}, {"read_ms": 4.0}),
):
    row(rule, partial(responded, **planted), "any")
    row(rule, partial(responded, **sound))
    row(rule, both)
LOST = {"lag_ns": None, "reason": reason("readings_lost", lost=9, readings=10), "values": [None] * 200}
row("sensor_lag", partial(responded, **LOST), lacks="readings_lost")
row("sensor_period", partial(responded, **LOST), lacks="value_did_not_change")


def boards(*states, rounds=4, **gauges):
    """Cells on boards in these states, whose gauges read so: `utilization=99.0`, or a value for each cell."""
    built = both(rounds=rounds, device_ids=[BUS])
    for index, result in enumerate(built.cells):
        read = {name: value[index] if isinstance(value, tuple) else value for name, value in gauges.items()}
        units = {"frequency": "MHz", "power": "W"}
        seen = {f"nvml.0.{name}": (value, value, units.get(name, "%")) for name, value in read.items()}
        for launch in result.launches:
            launch.sensors = b.sampled(**seen)
    known = [Accelerator(**{"name": "gpu 0", "device_id": BUS} | state) for state in states or [{}]]
    built.state = StateSpan(before=b.changed(built.state.before, device_facts(known)), after=None)
    built.identity = b.identity(accelerators=[Accelerator(name="gpu 0", model="H100", device_id=BUS)])
    return built


OF_BOARDS = ("hardware_slowdown", "power_capped", "device_declared_not_used", "clocks_differ", "cap_below_default",
             "pcie_narrow", "ecc", "mig")  # fmt: skip
for rule in OF_BOARDS:
    row(rule, boards, lacks="not_recorded")
FULL = {"utilization": 99.0, "tensor_activity": 0.0, "fp32_activity": 0.5, "dram_activity": 0.1}
# A small kernel computes on the few multiprocessors that it fills.
row("gpu_full_but_not_computing", partial(boards, **FULL, sm_activity=0.76))
row(
    "gpu_full_but_not_computing", partial(boards, **FULL, sm_activity=100.0), twice("bad", "gpu_full_but_not_computing")
)
row("device_declared_not_used", partial(boards, utilization=1.0, throttled=0.0))
row("device_throttled", partial(boards, thermal_violation=0.001, throttled=0.0))
row("clocks_differ", partial(boards, frequency=(1755.0, 1740.0)))
row("clocks_differ", partial(boards, frequency=(1755.0, 1590.0)), "warning clocks_differ jax", fastest_mhz=1755.0)
NOTES = [reason("device_shared", processes=2), reason("device_throttled", share_pct=80.0, causes="heat")]
row("device_shared", partial(both, notes=NOTES), twice("bad", "device_shared"), processes=2)
row("device_throttled", partial(both, notes=NOTES), twice("warning", "device_throttled"), share_pct=80.0)
row("caps_differ", lambda: [boards({"power_cap_w": cap_w}) for cap_w in (700.0, 699.9)])
row("caps_differ", lambda: [boards({"power_cap_w": cap_w}) for cap_w in (700.0, 699.9, 500.0)], "any",
    cap_w=500.0, usual_w=699.9)  # fmt: skip


# --- The host.

# Per step of 2 ms.
CALM = {
    "machine.swapped_in_b": 0, "machine.swapped_out_b": 0, "process.major_faults": 0, "pressure.memory_some_ns": 0,
    "pressure.memory_full_ns": 0, "pressure.cpu_some_ns": 0.2e6,
}  # fmt: skip


def host(counters=(), *, cpu=(), limit=None, before=(), after=(), seconds=None):
    built = cells(b.member("torch", 2.0, counters=CALM | dict(counters)), cycles=4)
    lists = {"core": ["0", "1"], "node": ["0-1"]} | dict(cpu)
    cpus = {f"cpu.{kind}.{index}": text for kind, texts in lists.items() for index, text in enumerate(texts)}
    built.identity = b.identity(facts=cpus | {"container.cpu_limit": limit})
    known = {"core_throttled": 5, "package_throttled": 5, "numa_misses": 5, "clock_synchronized": True}
    moments = {} if seconds is None else {"before": 0, "after": seconds * S}
    ends = {"before": before, "after": after}
    built.state = StateSpan(**{
        end: replace(b.changed(built.state.before, known | dict(fields)), raw_ns=moments.get(end))
        for end, fields in ends.items()
    })  # fmt: skip
    return built


NODES = {"node": ["0-1", "2-3"]}
BORROWED = {"cpu": NODES, "after": {"numa_misses": 20_005}}
for rule, wanted, plant in (
    ("swapped", "warning swapped torch", {"counters": {"machine.swapped_in_b": 1 << 14, "process.major_faults": 4}}),
    ("memory_pressure", "warning memory_pressure torch", {"counters": {"pressure.memory_some_ns": 0.1e6}}),
    ("cpu_pressure", "note cpu_pressure torch", {"counters": {"pressure.cpu_some_ns": 1.6e6}}),
    ("quota_below_threads", "warning", {"limit": 1.5}),
    ("numa_remote", "note", {"cpu": {"node": ["0", "1"]}}),
    ("numa_remote", "warning", BORROWED),
    ("numa_remote", "warning", BORROWED | {"seconds": 60}),
    ("smt_shared", "note", {"cpu": {"core": ["0-1"]}}),  # two threads on one core
    ("smt_shared", "note", {"cpu": {"core": ["0,2", "1,3"]}}),  # the other halves are others'
    ("cpu_throttled", "warning", {"after": {"core_throttled": 9}}),
    ("clock_not_synchronized", "note", {"before": {"clock_synchronized": False}}),
):
    row(rule, partial(host, **plant), wanted if " " in wanted else f"{wanted} {rule}")
    row(rule, host)
    # Without a quota there is nothing that threads could be above.
    row(rule, partial(both, "cpu"), lacks="" if rule == "quota_below_threads" else "not_recorded")
row("numa_remote", partial(host, **BORROWED, seconds=3600))
row("smt_shared", partial(host, cpu={"core": ["0,2", "1,3"]}), "any", cores=2, others_cpus=2)
row("cpu_throttled", partial(host, after={"core_throttled": 9}), "any", cores=4, packages=0)


# --- Its counters; test_causes.py has which of several causes is named.

STEP = 20.0  # ms, with two CPUs in use
USED = {
    "process.cpu_ns": 36e6, "process.user_ns": 35e6, "process.system_ns": 1e6, "process.minor_faults": 1,
    "machine.busy_ns": 36.5e6, "machine.steal_ns": 0, "cgroup.throttled_ns": 0,
}  # fmt: skip


def counted(rounds=8, changes=(), **more):
    return cells(b.member("torch", STEP, "cnn", counters=USED | dict(changes), **more), rounds=rounds, cycles=12)


FAULTS = {"process.user_ns": 18e6, "process.system_ns": 18e6, "process.minor_faults": 8000}
row("page_faults", counted)
row(
    "page_faults", partial(counted, changes=FAULTS), "note page_faults torch", kernel_share_pct=50, faults_per_step=8000
)
row("kernel_share", partial(counted, changes=FAULTS | {"process.minor_faults": 1}), "note kernel_share torch")
row("stalls", partial(counted, stall=0.25), "warning stalls torch", stalled_pct=20)
row("stalls", partial(counted, 2, stall=0.25), lacks="too_few_rounds")
row("throttled", partial(counted, changes={"cgroup.throttled_ns": 30e6}), "warning throttled torch")
row("bimodal", partial(counted, slow=1.9, slow_rounds=(1, 4, 6)), "warning bimodal torch", slow_share_pct=37.5)
row("cpus_idle", partial(counted, changes={"process.cpu_ns": 16e6}), "note cpus_idle torch")
row("cpus_beyond", partial(counted, changes={"process.cpu_ns": 70e6}), "warning cpus_beyond torch")
row(
    "contention",
    partial(counted, change=b.beside_others(0.45, cpus=1.1)),
    "bad contention torch",
    contention_pct=45,
)


@pytest.mark.parametrize(("rule", "plant", "wanted", "lacks", "values"), ROWS)
def test_a_rule_finds_what_is_planted_and_nothing_else(rule, plant, wanted, lacks, values):
    built = plant()
    findings, missing = outcomes(rule, *(built if isinstance(built, list) else [built]))
    shown = [" ".join([each.severity, each.code, *each.cell_key.split("/")[1:2]]) for each in findings]
    assert ", ".join(shown) == wanted or (wanted == "any" and len(shown) == 1), (shown, missing)
    assert ", ".join(dict.fromkeys(missing)) == lacks
    for name, value in values.items():
        assert findings[0].values[name] == (value if isinstance(value, str) else pytest.approx(value, rel=0.05)), name


def test_every_rule_is_found_by_a_row_or_in_a_golden_output():
    printed = "".join(path.read_text("utf-8") for path in OUTPUTS.glob("audit-*"))
    # tests/compare/test_same_code.py has the rule of that name.
    by_row = {"same_code", *(param.values[0] for param in ROWS if param.values[2] or param.values[3])}
    assert [name for name in RULES if name not in by_row and f"  {name.replace('_', '-')}  " not in printed] == []


@pytest.mark.parametrize("rule", ["few_updates", "sensor_broken", "no_idle", "modelled_beside_measured"])
def test_rules_on_joules_do_not_apply_where_there_are_none(rule):
    for entries in ([], [GAP]):
        assert asked([rule], both("cpu", energy=entries)).rules[0].outcome == "not_applicable"


def test_cells_on_a_cpu_are_not_asked_for_their_boards():
    names = [rule.name for rule in RULES.values() if rule.on == "accelerator" and rule.scope != "runs"]
    assert {rule.outcome for rule in asked(names, b.profile()).rules} == {"not_applicable"}


@pytest.mark.parametrize("odd", [{"joules_j": -5.0}, {"window_ns": -10 * S}, {"block_ns": 0}, {"steps": -1}], ids=str)
@pytest.mark.parametrize(("device", "sensor"), [("cpu", "rapl.package-0"), ("gpu", "nvml.0.energy")])
def test_no_rule_breaks_on_odd_joules(odd, device, sensor):
    asked(None, both(device, rounds=8, energy=[entry(sensor=sensor, **odd)]))


def test_the_fewest_updates_count_of_the_sensors_that_the_figure_is_of():
    built = both(energy=[entry(**BOARD, updates=120)])
    built.cells[0].launches[0].energy = [entry(**BOARD, updates=51), entry(sensor="nvml.0.power", updates=5)]
    assert [finding.values["updates"] for finding in outcomes("few_updates", built)[0]] == [51]


def first_hour(path, built):
    """Exit code and statuses by rule of `kit selftest --from`, and what it prints."""
    built.suite = replace(built.suite, name="first-hour")
    b.write(path, built)
    options = {"catch_exceptions": False, "standalone_mode": False}
    code, printed = (CliRunner().invoke(app, ["selftest", "--from", str(path), *words], **options)
                     for words in (["--json"], []))  # fmt: skip
    statuses = {}
    for check in json.loads(code.stdout):
        statuses.setdefault(check["rule"], []).append(check["status"])
    return code.return_value, statuses, " ".join(printed.stdout.split())


def test_the_first_hour_has_what_passed_failed_and_could_not_be_checked(tmp_path):
    code, statuses, printed = first_hour(tmp_path / "hour.json", responded(lag_ms=60, change=pipelined()))
    assert code == 0
    assert statuses["sensor_lag"] == statuses["step_above_latency"] == ["pass"]
    assert statuses["wait_too_long"] == statuses["turns_cost"] == ["not_checked"]
    assert "nvml.0.energy shows a load 60.0 ms late" in printed, "a pass has its number"
    code, statuses, printed = first_hour(tmp_path / "slow.json", responded(lag_ms=500))
    assert (code, statuses["sensor_lag"]) == (1, ["fail"])
    assert "FAIL" in printed and "KIT_GPU_FILE" in printed


def test_a_fit_is_in_the_first_hour_for_its_losses_alone(tmp_path):
    built = both(change=pipelined(), empty_wait_ns=MS // 10)
    fit = b.member("torch", **b.EXACT, device="gpu", task="fit", launch={"empty_wait_ns": MS})
    fitted = b.profile(b.group("mlp fit", fit), rounds=1, cycles=1)
    built.cells, built.groups = built.cells + fitted.cells, built.groups + fitted.groups
    assert first_hour(tmp_path / "hour.json", built)[1]["wait_too_long"] == ["pass"]
