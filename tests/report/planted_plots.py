"""Profiles for pictures, with planted steps and no noise; a picture of them, and what its artists show."""

import profile_builder as b
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from msgspec.structs import replace

from kit.report.plot.picture import PlotRequest, draw

TITLES = {"jax": "JAX", "torch": "PyTorch", "tensorflow": "TensorFlow"}
EXACT = {"sd": 0.0, "noise": 0.0}
BATCHES = (1, 10, 100, 1000)
DEAD = dict.fromkeys(range(8), b.reason("out_of_memory", signal="SIGKILL"))


def sweep(batches=BATCHES, backends=("torch", "jax"), device="cpu", factor=1.0, rounds=4):
    """Steps of `batch + 10` ms in training and half of it in inference, `jax` twice as fast, without any noise."""
    plans = [
        b.group(f"{name} {task}", *members)
        for name in backends
        for task in ("train", "infer")
        for members in [
            [
                b.member(name, factor * step_ms(name, task, batch), task=task, batch=batch, device=device, **EXACT)
                for batch in batches
            ]
        ]
    ]
    return b.profile(*plans, rounds=rounds, cycles=3, drift=0.0, suite="batch-sweep", compare=("batch",))


def step_ms(name, task, batch):
    return (batch + 10) / (2 if name == "jax" else 1) / (2 if task == "infer" else 1)


def layered(backends=("torch", "jax")):
    plans = [
        b.group(
            f"{name} {layers}",
            *(
                b.member(name, layers * units / 10, "dblstm", parameters={"layers": layers, "units": units}, **EXACT)
                for units in (32, 64, 128, 256)
            ),
        )
        for name in backends
        for layers in (1, 2, 3)
    ]
    return b.profile(*plans, rounds=3, cycles=3, drift=0.0, compare=("units",))


def with_ceilings(profile, backends=("torch", "jax")):
    """The profile with ceilings of its backends: products of 200 and 100 GFLOP/s, triads of 40 and 10 GB/s."""
    steps_ms = [
        ("matmul", {"n": 1000}, 10.0),
        ("matmul", {"n": 100}, 0.02),
        ("triad", {"mib": 16}, 1.2583),
    ]
    steps_ms.append(("triad", {"mib": 256}, 80.531))
    members = [
        b.group(
            f"{name} {parameters}",
            *(b.member(of, ms, name, task="infer", batch=1, parameters=parameters, **EXACT) for of in backends),
        )
        for name, parameters, ms in steps_ms
    ]
    ceilings = b.profile(*members, rounds=2, cycles=2, drift=0.0)
    return replace(profile, cells=[*profile.cells, *ceilings.cells], groups=[*profile.groups, *ceilings.groups])


def drawn(kind, *profiles, baseline=None):
    labelled = (
        [("p", profiles[0])] if len(profiles) == 1 else [(f"p{at}", profile) for at, profile in enumerate(profiles)]
    )
    return draw(PlotRequest(kind, labelled, TITLES, baseline))


def lines(axes):
    """Name in the legend -> (x, y) of each line with that look."""
    legend = axes.figure.legends[0]
    looks = {
        (to_hex(handle.get_color()), handle.get_marker()): text.get_text()
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True)
    }
    drawn = {}
    for line in axes.lines:
        name = looks.get((to_hex(line.get_color()), line.get_marker()))
        if name is not None:
            drawn.setdefault(name, []).append((list(line.get_xdata()), list(line.get_ydata())))
    return drawn


def line(axes, name):
    (only,) = lines(axes)[name]
    return only


def bars(axes):
    """The ends of each interval, by x."""
    segments = [
        segment
        for collection in axes.collections
        if isinstance(collection, LineCollection)
        for segment in collection.get_segments()
    ]
    return sorted((round(float(low[0]), 6), float(low[1]), float(high[1])) for low, high in segments)


def words(figure):
    return " ".join(text.get_text() for part in (figure, *figure.subfigs) for text in part.texts)
