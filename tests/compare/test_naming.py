"""What cells are called where they stand alone."""

from profile_builder import cell

from kit.compare.naming import cell_names
from kit.profile.cell import OWN


def names(*cells):
    return list(cell_names(cells).values())


def test_a_cell_is_called_by_what_people_ask_for():
    axes = {"precision": OWN, "compile_mode": OWN, "feed": OWN}
    assert names(cell("program", "script", "train", batch=96, **axes)) == ["script (train, batch 96)"]
    frameworks = cell("torch", "mlp", "train", compile_mode="eager"), cell("jax", "mlp", "train", compile_mode="jit")
    assert names(*frameworks) == ["mlp (torch, train, batch 128)", "mlp (jax, train, batch 128)"]


def test_what_tells_cells_apart_is_in_their_names():
    modes = [cell("torch", "mlp", "infer", compile_mode=mode) for mode in ("eager", "compile")]
    assert names(*modes) == ["mlp (torch, infer, batch 128, eager)", "mlp (torch, infer, batch 128, compile)"]
    sizes = [cell("jax", "dblstm", "fit", parameters={"units": units}) for units in (16, 32)]
    assert names(*sizes) == ["dblstm (jax, fit, batch 128, units 16)", "dblstm (jax, fit, batch 128, units 32)"]
