"""What cells are called where they stand alone."""

from profile_builder import cell

from kit.compare.naming import cell_names


def names(*cells):
    return list(cell_names(cells).values())


def test_what_tells_cells_apart_is_in_their_names():
    modes = [cell("torch", "mlp", "infer", compile_mode=mode) for mode in ("eager", "compile")]
    assert names(*modes) == ["mlp (torch, infer, batch 128, eager)", "mlp (torch, infer, batch 128, compile)"]
    sizes = [cell("jax", "dblstm", "fit", parameters={"units": units}) for units in (16, 32)]
    assert names(*sizes) == ["dblstm (jax, fit, batch 128, units 16)", "dblstm (jax, fit, batch 128, units 32)"]
