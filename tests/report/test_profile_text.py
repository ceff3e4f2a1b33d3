import re

import msgspec
from profile_builder import NO_RAPL, build_cell, build_failed, build_identity, build_profile, build_result, six_cells

from kit.profile.parity import PARITY_TOLERANCE
from kit.report import profile_text

EVIL = "x\x1b[2J\x07\r\n\u202e"


def test_a_profile_shows_machine_clock_sensors_phases_and_launches():
    results = [*six_cells(launches=3), build_failed(build_cell("torch", "lstm"))]
    rendered = profile_text.render(build_profile(results))
    for title in ("Machine", "State", "Clock", "Sensors", "Phases (median over launches)", "Launches"):
        assert f"\n{title}\n" in rendered
    assert "Example CPU 9000" in rendered
    assert "monotonic_raw: the TSC is not the kernel's clocksource" in rendered
    assert re.search(rf"rapl\.package-0 +unavailable .*{NO_RAPL}", rendered)
    launches = rendered.split("\nLaunches\n")[1].split("\n\n")[0].strip().split("\n")
    assert len(launches) == 1 + 6 * 3 + 1
    assert sum("4.000 ms" in line for line in launches) == 1
    assert re.search(r"mlp/torch.* 1 +warmup +40 +300 +1\.992 ms +2\.191 ms", rendered)
    assert re.search(r"lstm/torch.* failed .*in first_step: out of memory", rendered)
    assert re.search(r"mlp/jax/\S+ +2\.00 s +5\.00 ms +100 ms +50\.0 ms +900 ms", rendered)


def test_launches_without_steady_state_and_marks_are_shown():
    result = build_result(build_cell("torch"), [None], recompiles=1, warnings=["the clock drifted"])
    rendered = profile_text.render(build_profile([result]))
    assert re.search(r"no steady state +– .* recompiled, the clock drifted", rendered)
    result.launch_summaries[0] = msgspec.structs.replace(result.launch_summaries[0], reason="its last half [wanders]")
    rendered = profile_text.render(build_profile([result]))
    assert re.search(r"no steady state +– .* recompiled, its last half \[wanders\], the clock drifted", rendered)


def test_a_profile_without_anything_still_shows():
    rendered = profile_text.render(build_profile([], clock=None, sensors=[], interrupted=True))
    for words in ("no certificate", "none was probed", "none finished", "no launch recorded a phase", "INTERRUPTED"):
        assert words in rendered


def test_names_from_the_file_are_made_harmless():
    results = [build_result(build_cell("torch", EVIL), [None], warnings=[EVIL]), build_failed(build_cell("jax"), EVIL)]
    rendered = profile_text.render(build_profile(results, identity=build_identity(EVIL, EVIL), id=EVIL))
    assert not set(rendered) & set("\x1b\x07\r\u202e")


def test_the_parity_proof_shows_losses_and_verdicts():
    rendered = profile_text.render(build_profile(six_cells(launches=1)))
    section = rendered.split("\nParity")[1].strip().split("\n")[1:]
    assert len(section) == 1 + 6
    assert " · 1 launch a cell · " in rendered
    assert re.search(r"mlp/jax.* 2\.300000 +1\.150000 +0\.460000 +0\.230000 +0\.115000 +0\.0e\+00 +agrees", rendered)
    one_off = build_result(build_cell("jax"), [4e6], loss_shift=0.01)
    rendered = profile_text.render(build_profile([build_result(build_cell("torch"), [4e6]), one_off]))
    assert rendered.count(f"DISAGREES within {PARITY_TOLERANCE:g} with 1 other cell\n") == 2
