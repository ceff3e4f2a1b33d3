"""`--meter` of `kit compare` and `kit audit`: whole commands with planted files, good and bad."""

import contextlib
import csv
import io
import json
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import profile_builder as b
import pytest
from click.testing import CliRunner

from kit.cli.app import app

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
RUN_S, BLOCK_S, STEPS = 900, 60, 6_000
IDLE_W, DRAWN_W = 80.0, {"torch": 240.0, "jax": 160.0}
FIRST_S = {"torch": 60, "jax": 180}  # of each round of 240 s


def long_block(name):
    """Give each launch a long block that no sensor of the device saw."""

    def change(launch):
        begin_ns = (1_000 + FIRST_S[name] + 240 * launch.round) * b.S
        launch.energy = b.energy(None, STEPS * 128, block_ns=BLOCK_S * b.S, begin_ns=begin_ns, steps=STEPS)

    return change


def metered(*, anchored=True, begin=BEGIN, **more):
    members = [b.member(name, 10.0, sd=0.001, change=long_block(name)) for name in DRAWN_W]
    built = b.profile(b.group("mlp train", *members), rounds=3, **more)
    before, after = (
        msgspec.structs.replace(
            built.state.before,
            taken=(begin + timedelta(seconds=second)).isoformat(),
            **({"raw_ns": (1_000 + second) * b.S, "raw_width_ns": 100} if anchored else {}),
        )
        for second in (0, RUN_S)
    )
    built.state = msgspec.structs.replace(built.state, before=before, after=after)
    return built


def watts(second):
    drawn = (DRAWN_W[name] for name, first_s in FIRST_S.items() if 0 <= (second - first_s) % 240 < BLOCK_S)
    return next(drawn, IDLE_W) if second < 720 else IDLE_W


def lines(*, zone=UTC, shift_s=0.0):
    for second in range(RUN_S):
        yield f"{(BEGIN + timedelta(seconds=second + shift_s)).astimezone(zone).isoformat()},{watts(second)}"


GOOD = ["time,power_w", *lines()]
BAD = {
    "absent.csv": (None, "cannot be read"),
    "empty.csv": ([""], "empty"),
    "no_csv.csv": (["\x00\x01\x02", "\x03"], "begin it with time,power_w"),
    "naive.csv": ([line.replace("+00:00", "") for line in GOOD], "has no zone; write it as"),
    "unsorted.csv": ([GOOD[0], *GOOD[:0:-1]], "sort by time"),
    "negative.csv": ([*GOOD[:9], GOOD[9].split(",")[0] + ",-4", *GOOD[10:]], "line 10: '-4' is not possible"),
    "tomorrow.csv": ([GOOD[0], *lines(shift_s=86_400)], "the run took 2026-01-01 00:00:00 to 2026-01-01 00:15:00 UTC"),
    "far.csv": (["time,power_w", "9300000000,4", "9300000001,4"], "is not a time in Unix seconds"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("metered")
    b.write(made / "run.json", metered())
    b.write(made / "old.json", metered(anchored=False, id="old", identity=b.identity("Other CPU")))
    (made / "meter.csv").write_text("\n".join(GOOD))
    (made / "east.csv").write_text("\n".join([GOOD[0], *lines(zone=timezone(timedelta(hours=5, minutes=45)))]))
    # The second block of torch lies from 300 to 360 s.
    (made / "gap.csv").write_text("\n".join([*GOOD[:320], *GOOD[340:]]))
    for name, (text, _) in BAD.items():
        if text is not None:
            (made / name).write_text("\n".join(text))
    return made


def kit(folder, *words):
    with contextlib.chdir(folder):
        return CliRunner().invoke(app, words, standalone_mode=False)


def rows(folder, *words):
    result = kit(folder, "compare", *words, "--format", "csv")
    assert result.exception is None, result.exception
    return {row["name"]: row for row in csv.DictReader(io.StringIO(result.stdout))}


@pytest.mark.parametrize(("file", "launches"), [("meter.csv", 3), ("east.csv", 3), ("gap.csv", 2)])
def test_the_planted_watts_are_the_joules_of_a_sample_in_any_zone_and_beside_a_gap(folder, file, launches):
    by_name = rows(folder, "run.json", "--meter", file)
    for name, drawn_w in DRAWN_W.items():
        share = float(by_name[name]["energy_error_share"])
        assert 0.01 < share < 0.06
        planted_j = drawn_w * BLOCK_S / (STEPS * 128)
        assert float(by_name[name]["energy_per_sample_j"]) == pytest.approx(planted_j, rel=share)
        assert (by_name[name]["energy_sensors"], by_name[name]["energy_tier"]) == ("meter", "external_meter")
    assert by_name["torch"]["energy_launches"] == str(launches)
    assert rows(folder, "run.json")["torch"]["energy_per_sample_j"] == ""


def test_the_price_of_a_kwh_is_of_the_metered_joules(folder):
    assert "needs joules" in str(kit(folder, "compare", "run.json", "--price-kwh", "0.3").exception)
    torch = rows(folder, "run.json", "--meter", "meter.csv", "--price-kwh", "0.3")["torch"]
    planted = 1e6 * DRAWN_W["torch"] * BLOCK_S / (STEPS * 128) / 3.6e6 * 0.3
    assert float(torch["cost_per_million"]) == pytest.approx(planted, rel=0.05)


def test_the_audit_sees_the_meter_and_names_profiles_that_it_cannot_be_aligned_to(folder):
    # The other machine's, which comes first, keeps nothing from the one that the file is of.
    words = ("audit", "old.json", "run.json", "--rule", "few-updates", "--json")
    alone = json.loads(kit(folder, *words).stdout)
    assert [finding["values"].get("sensor") for finding in alone["findings"]] == []
    result = kit(folder, *words, "--meter", "meter.csv")
    assert result.return_value == 2
    document = json.loads(result.stdout)
    assert {(finding["profile"], finding["values"]["sensor"]) for finding in document["findings"]} == {("run", "meter")}
    (unread,) = [profile for profile in document["profiles"] if profile.get("error")]
    assert (unread["label"], "run's clock" in unread["error"]) == ("old", True)


@pytest.mark.parametrize("verb", ["compare", "audit"])
@pytest.mark.parametrize("file", BAD)
def test_a_bad_file_is_one_line_that_says_what_is_wrong(folder, verb, file):
    error = kit(folder, verb, "run.json", "--meter", file).exception
    assert BAD[file][1] in str(error)
    assert "\n" not in str(error)
    assert error.exit_code == 2


def test_a_profile_without_utc_beside_its_clock_is_one_line(folder):
    error = kit(folder, "compare", "old.json", "--meter", "meter.csv").exception
    assert "run's clock" in str(error)
    assert error.exit_code == 2
