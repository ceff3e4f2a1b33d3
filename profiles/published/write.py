"""Write the profiles in this folder: run `python profiles/published/write.py` after a change of the profile's schema.

The figures are copied from documents, one profile each. Nobody has measured them with this kit.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kit.profile.cell import Cell
from kit.profile.facts import Identity, State
from kit.profile.fields import reason
from kit.profile.schema import SCHEMA, CellResult, FigureName, Kit, Profile, Published, StateSpan, StepPlan, SuiteUsed
from kit.profile.store import write_profile

FOLDER = Path(__file__).parent
UNKNOWN = "unknown"
NOT_PUBLISHED = reason("not_published")


def cell(figures: Mapping[FigureName, float], **fields: Any) -> CellResult:  # noqa: ANN401 - coordinates
    """Return a cell with its figures; what the document does not say is unknown."""
    default: dict[str, Any] = {"backend": UNKNOWN, "task": "fit", "batch": 0, "feed": "host"}
    made = Cell(**default | {"precision": UNKNOWN, "compile_mode": UNKNOWN} | fields)
    return CellResult(
        key=made.key,
        cell=made,
        launches=[],
        published=[Published(figure=name, value=value) for name, value in figures.items()],
    )


def write(suite: str, source: str, cells: list[CellResult]) -> None:
    """Write the profile of one document; `source` is all that the document says of itself."""
    plan = StepPlan(cycles=0, block_s=0.0, lead_in_s=0.0, warmup_s=0.0, warmup_steps=0, energy_s=0.0)
    profile = Profile(
        schema=SCHEMA,
        id=f"published-{suite}",
        created=UNKNOWN,
        kit=Kit(version=UNKNOWN, revision=None),
        identity=IDENTITY,
        state=StateSpan(before=STATE, after=None),
        clock=None,
        sensors=[],
        suite=SuiteUsed(
            name=suite, sha256="", compare=["device"], process_axes=[], rounds=0, plan=plan, data={}, seed=0, skipped=[]
        ),
        groups=[],
        cells=cells,
        measured=False,
        source=source,
    )
    write_profile(FOLDER / f"{suite}.json", profile)


IDENTITY = Identity(facts={"cpu.model": UNKNOWN}, reasons=dict.fromkeys(("cpu", "software"), NOT_PUBLISHED))
STATE = State(taken="", facts={}, reasons={"state": NOT_PUBLISHED})

# Of the CPU's time over the device's, in percent. Of the TPU the document gives the change: -10 % is written as 90.
FIVE_NETS = {
    ("gpu", "mlp"): (697, 177),
    ("gpu", "cnn"): (3332, 915),
    ("gpu", "rnn"): (229, 601),
    ("gpu", "lstm"): (2257, 1113),
    ("gpu", "autoencoder"): (1464, 326),
    ("tpu", "mlp"): (101, None),
    ("tpu", "lstm"): (109, None),
    ("tpu", "autoencoder"): (90, None),
}
# "In the case of 128 units the CPU is 25 times slower than TPU and GPU", 55 times at 256; batch 128.
DBLSTM_TIMES_SLOWER = {128: 25, 256: 55}
# Batch: epoch, seconds, and what the document calls step time: it is time per sample, microseconds.
CNN_BATCH = {
    "gpu": {256: (6, 94), 512: (5, 82), 1024: (4, 79)},
    "tpu": {256: (6, 97), 512: (3, 58), 1024: (2, 37)},
}
# Batch: training and inference, seconds per sample; as many points as the document prints.
BATCH_SWEEP = {
    "cpu": {
        1: (0.00463285360733668, 0.0005607285221417745),
        2: (0.0030870140480995178, 0.00039501887957255045),
        9: (0.0008144742250442505, 0.00012006571491559346),
        10: (0.0008023828832308452, 0.0001123758614063263),
        20: (0.0004529981780052185, 7.745010852813721e-05),
        90: (0.0002142064627011617, 5.1415328184763594e-05),
        100: (0.000197178529103597, 5.233177741368612e-05),
        200: (0.0001714441657066345, 4.712630377875434e-05),
        800: (0.00014415589888890583, 4.344169994195302e-05),
        900: (0.00013813772281010946, 4.3009133140246076e-05),
        1000: (0.00013527613162994385, 4.3336531519889835e-05),
        8000: (0.0001395345679918925, 4.52654759089152e-05),
        9000: (0.00013844428618748982, 4.459146062533061e-05),
        10000: (0.00013860533952713013, 4.4684839248657224e-05),
    },
    "gpu": {
        6: (0.0007073731883366903, 0.00010258510112762451),
        7: (0.000611465265750885, 9.054846366246541e-05),
        8: (0.0005274283957481384, 7.262385686238607e-05),
        60: (6.55035392443339e-05, 1.2837229172388712e-05),
        70: (5.7511791388193766e-05, 1.172607938448588e-05),
        80: (5.007208585739136e-05, 1.1071547865867615e-05),
        600: (1.0306185881296794e-05, 3.6934071116977266e-06),
        700: (9.374789396921794e-06, 3.716956575711568e-06),
        800: (8.592690626780192e-06, 3.686127879402854e-06),
        5000: (5.650022029876709e-06, 3.910848727593055e-06),
        6000: (6.9256997108459475e-06, 4.416551854875353e-06),
        7000: (6.716055075327555e-06, 7.853390552379466e-06),
    },
}
# Training time, seconds, and accuracy.
FRAMEWORKS_CNN = {
    ("tensorflow", "cpu"): (1286.52, 0.9275),
    ("tensorflow", "gpu"): (77.778, 0.9294),
    ("tensorflow", "tpu"): (268.768, 0.964),
    ("torch", "cpu"): (3961.678, 0.9434),
    ("torch", "gpu"): (751.83, 0.9438),
    ("jax", "gpu"): (94.98, 0.979),
}


def main() -> None:
    """Write all five."""
    write(
        "five-nets",
        "Execution-Time Performance of Deep Learning Networks on CPU, GPU and TPU Runtime Environments, report, "
        "its figures in cybertraining-dsc/sp21-599-359 on GitHub; authors and date not stated",
        [
            cell(
                {name: pct for name, pct in (("train_gain_pct", train), ("test_gain_pct", test)) if pct is not None},
                workload=net,
                device=device,
            )
            for (device, net), (train, test) in FIVE_NETS.items()
        ],
    )
    write(
        "dblstm-har",
        "Haklin Kimm, Incheon Paik and Hanke Kimm: Performance Comparison of TPU, GPU, CPU on Google Colaboratory over "
        "Distributed Deep Learning, slides, IEEE 14th International Symposium on Embedded Multicore/Many-core "
        "Systems-on-Chip (MCSoC-2021), December 2021; DOI not stated",
        [
            cell(
                {"train_gain_pct": 100 * times},
                workload="dblstm", parameters={"units": units}, backend="tensorflow", device=device, batch=128,
            )
            for units, times in DBLSTM_TIMES_SLOWER.items()
            for device in ("gpu", "tpu")
        ],
    )  # fmt: skip
    write(
        "cnn-batch",
        "Why TPUs ?, notebook on Google Colab; author and date not stated",
        [
            cell(
                {"epoch_time_s": epoch_s, "train_sample_ns": 1e3 * sample_us},
                workload="cnn_small", backend="tensorflow", device=device, batch=batch,
            )
            for device, figures in CNN_BATCH.items()
            for batch, (epoch_s, sample_us) in figures.items()
        ],
    )  # fmt: skip
    write(
        "batch-sweep",
        "Comparison of the Train time and Inference Time of MNIST MLP and CNN on CPUs and GPUs with `keras`, notebook, "
        "after an experiment of arXiv:1904.08986v1; author and date not stated",
        [
            cell(
                {"train_sample_ns": 1e9 * train_s, "infer_sample_ns": 1e9 * infer_s},
                workload="mlp", backend="tensorflow", device=device, batch=batch,
            )
            for device, figures in BATCH_SWEEP.items()
            for batch, (train_s, infer_s) in figures.items()
        ],
    )  # fmt: skip
    write(
        "frameworks-cnn",
        "Mohamed Ashraf Ragab and Aya Ashraf Ragab: Acceleration of Deep Neural Network, slides, supervised by "
        "Nour El-medany; date and venue not stated",
        [
            cell({"train_time_s": time_s, "accuracy": accuracy}, workload="cnn_sgd", backend=backend, device=device)
            for (backend, device), (time_s, accuracy) in FRAMEWORKS_CNN.items()
        ],
    )


if __name__ == "__main__":
    main()
