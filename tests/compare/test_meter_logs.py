"""Logs of power as other tools write them, each with its oddities: the planted joules come out, or a reason."""

import contextlib
import itertools
import json
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import profile_builder as b
import pytest
from kit_process import invoke as kit
from metered import BEGIN, DRAWN, RUN_S, metered_run, watts
from msgspec.structs import replace
from refusals import refusal, refused

from kit.compare.log_times import UnreadableError, utc_ns, zone_named
from kit.compare.meter_logs import read_meter

BERLIN = ZoneInfo("Europe/Berlin")


def seconds(step):
    """Seconds of the run at which a row is written, the last of which was cut."""
    return np.arange(-10.0, RUN_S + 10, step).tolist()


def local(second, form):
    return (BEGIN + timedelta(seconds=second)).astimezone(BERLIN).strftime(form)


def mean_w(second, step, scale=1.0):
    """What was drawn on average in the time before."""
    return scale * float(np.mean([watts(second - step * (part + 0.5) / 20) for part in range(20)]))


def nvidia_smi(*, header="timestamp, index, power.draw [W], utilization.gpu [%]", unit=" W", rows=1):
    """A row a GPU, of which the first one's power is the run's; once N/A, once a header again, once a message."""
    yield header
    for number, second in enumerate(seconds(0.25)):
        at = local(second, "%Y/%m/%d %H:%M:%S.%f")[:-3]
        for gpu in range(rows):
            power = f"{watts(second) + 50 * gpu:.2f}{unit}" if number % 997 else "[N/A]"
            values = {"timestamp": at, "index": gpu, "power.draw": power, "power.draw.average": f"70.00{unit}"}
            values |= {"power.limit": f"700.00{unit}", "utilization.gpu": "97 %" if unit else "97", "name": "NVIDIA X"}
            names = [name.partition(" [")[0] for name in header.split(", ")]
            yield ", ".join(str(values.get(name, "[Not Supported]")) for name in names)
        if number == 400:
            yield from (header, "Unable to determine the device handle for GPU 0000:02:00.0: Unknown Error")


def ptdaemon():
    for number, second in enumerate(seconds(0.5)):
        at = local(second, "%m-%d-%Y %H:%M:%S.%f")[:-3]
        power = -1 if number % 499 == 7 else watts(second)
        yield (
            f"Time,{at},Watts,{power:.6f},Volts,228.570000,Amps,-1.000000,PF,0.486400,Mark,2026-03-29_02-30-00_testing"
            f",Ch1,Watts,{watts(second) / 2:.6f},Volts,228.570000"
        )


def yokotool():
    yield "T,P,I,V,Phi"
    for second in seconds(0.5):
        yield f"{BEGIN.timestamp() + second:.7f}, {watts(second):.2f},  1.45, 229.9, {'inf' if second == 40 else -11.2}"
    yield from ["Interrupted, exiting"] * 2


def tegrastats(rails="VDD_IN {0}mW/{0}mW VDD_CPU_GPU_CV 842mW/866mW", step=0.1):
    for second in seconds(step):
        power_mw = round(1000 * watts(second))
        yield (
            f"{local(second, '%m-%d-%Y %H:%M:%S')} RAM 2811/7620MB (lfb 31x4MB) CPU [8%@1510,off] GR3D_FREQ 33%@[408] "
            f"gpu@43C tj@43.1C {rails.format(power_mw, power_mw // 2)}"
        )


def turbostat(*, joules=False, summary=False):
    """The sum of two packages, whose first rows have theirs; others end early."""
    step = 0.5
    yield from [
        "turbostat version 2026.02.14 - Len Brown <lenb@kernel.org>",
        "RAPL: 234 sec. Joule Counter Range, at 280 Watts",
    ]
    header = [
        "Time_Of_Day_Seconds",
        *([] if summary else ["Package", "Core", "CPU"]),
        "Busy%",
        "Pkg_J" if joules else "PkgWatt",
        "RAM_J" if joules else "RAMWatt",
    ]
    for number, second in enumerate(seconds(step)):
        at, power_w = BEGIN.timestamp() + second, mean_w(second, step, step if joules else 1.0)
        if not number or not summary:
            yield "\t".join(header)
        yield "\t".join([f"{at:.6f}", *([] if summary else "---"), "5.2", f"{power_w:.2f}", "4.00"])
        for package in () if summary else (0, 1):
            yield "\t".join([f"{at - 0.02:.6f}", str(package), "0", "0", "5.2", f"{power_w / 2:.2f}", "2.00"])
            yield "\t".join([f"{at - 0.01:.6f}", str(package), "1", "1", "5.2"])


def perf(separator=",", *, comma=False, sockets=1, starts=True):
    step = 0.5
    if starts:
        yield from [f"# started on {local(-10, '%a %b %d %H:%M:%S %Y')}", ""]
    for second in seconds(step)[1:]:
        for socket, event in itertools.product(range(sockets), ("pkg", "ram")):
            joules_j = f"{mean_w(second, step, step / sockets) if event == 'pkg' else 1:.2f}"
            cells = [f"{second + 10 + 0.3:.9f}", *([f"S{socket}", "1"] if sockets > 1 else []), joules_j, "Joules"]
            cells += [f"power/energy-{event}/", "2002400000", "100.00", "", ""]
            if second == 55:
                cells[-7] = "<not counted>"
            line = separator.join(cells)
            yield line.replace(joules_j, joules_j.replace(".", ",")).replace("100.00", "100,00") if comma else line


ZONE = ("--meter-zone", "Europe/Berlin")
INSTANT = "timestamp, index, power.draw.average [W], power.draw [W]"
RAILS = "VDD_GPU_SOC {1}mW/{1}mW VDD_CPU_CV {1}mW/{1}mW NC 0mW/0mW NC 0mW/0mW"
OF_RAILS = ("--meter-column", "VDD_GPU_SOC", "--meter-column", "VDD_CPU_CV")
# How a log is written -> its lines, what reads it beside --meter, the device of the run, and what it covers.
LOGS = {
    "nvidia-smi": (nvidia_smi, ZONE, "gpu", "gpu"),
    "nvidia-smi without units, in another order": (
        lambda: nvidia_smi(header="name, power.limit [W], power.draw [W], timestamp", unit=""), ZONE, "gpu", "gpu",
    ),
    "nvidia-smi, one of two GPUs": (lambda: nvidia_smi(rows=2), (*ZONE, "--meter-column", "0"), "gpu", "gpu"),
    "nvidia-smi of an older board, without the moment": (
        lambda: nvidia_smi(header="timestamp, index, power.draw.instant [W], power.draw [W]"), ZONE, "gpu", "gpu",
    ),
    "nvidia-smi, of the moment": (
        lambda: (line.replace("power.draw [W]", "power.draw.instant [W]") for line in nvidia_smi(header=INSTANT)),
        ZONE, "gpu", "gpu",
    ),
    "PTDaemon": (ptdaemon, ZONE, "cpu", "wall"),
    "yokotool": (yokotool, (), "cpu", "wall"),
    "tegrastats": (tegrastats, ZONE, "gpu", "module"),
    "tegrastats without a total": (
        lambda: tegrastats(RAILS), (*ZONE, *OF_RAILS), "gpu", "VDD_GPU_SOC+VDD_CPU_CV",
    ),
    "turbostat": (turbostat, (), "cpu", "package"),
    "turbostat of joules": (lambda: turbostat(joules=True), (), "cpu", "package"),
    "turbostat, summary": (lambda: turbostat(summary=True), (), "cpu", "package"),
    "perf stat": (perf, ZONE, "cpu", "package"),
    "perf stat with decimal commas": (lambda: perf(comma=True), ZONE, "cpu", "package"),
    "perf stat, semicolons and decimal commas": (lambda: perf(";", comma=True), ZONE, "cpu", "package"),
    "perf stat of two sockets": (lambda: perf(sockets=2), ZONE, "cpu", "package"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    with contextlib.chdir(tmp_path):
        yield tmp_path


def compared(*options):
    document = json.loads(kit("compare", "run.json", "--meter", "log", *options, "--format", "json").stdout)
    return {row["name"]: row for group in document["groups"] for row in group["rows"]}, document


@pytest.mark.parametrize("kind", LOGS)
def test_each_log_gives_the_planted_joules_and_says_what_it_covers(folder, kind):
    lines, options, device, covers = LOGS[kind]
    (folder / "log").write_text("".join(f"{line}\n" for line in lines()) + "26")  # the last line was cut
    b.write(folder / "run.json", metered_run(own_w=50.0, device=device))
    rows, document = compared(*options)
    for name, (power_w, _) in DRAWN.items():
        values = rows[name]["numbers"]
        assert values["energy_power_w"] == pytest.approx(power_w, rel=values["energy_error_share"])
        assert values["energy_power_w"] == pytest.approx(power_w, rel=0.02)
        assert (values["energy_sensors"], values["energy_launches"]) == (f"meter.{covers}", 3)
    (note,) = [note["what"] for note in document["notes"] if note["what"]["code"] in {"meter", "meter_repeats"}]
    assert note["values"]["covers"] == covers
    assert rows["jax"]["energy_versus"]["ratio"] == pytest.approx(0.6, rel=0.03)


def with_lines(*lines):
    return "".join(f"{line}\n" for line in lines)


SMI = "timestamp, index, power.draw [W]"
AT = "2026/03/29 02:30:0"
UNNAMED = [f"{AT}{second}.{gpu}, 8{gpu} W" for second in range(9) for gpu in (0, 1)]
OF_TWO = [f"{AT}{second}.{gpu}, {gpu}, 8{gpu} W" for second in range(9) for gpu in (0, 1)]
CODECARBON = ["timestamp,project_name,run_id,duration,emissions,energy_consumed", "2026-03-29T02:30:00,a,b,1,2,3"]
DAY_FIRST = [f"Time,29-03-2026 02:30:0{second}.000,Watts,8.0,Volts,1" for second in range(2)]
# What cannot work: its first lines, and a part of the line that says why.
REFUSED = {
    "dcgmi": (["#Entity   POWER", "ID        W", "GPU 0     71.204"], "writes no time"),
    "nvidia-smi dmon": (["# gpu    pwr  gtemp", "# Idx      W      C", "    0     58     44"], "no date"),
    "nvidia-smi -q": (["==============NVSMI LOG==============", "Timestamp : Fri Jan 24 20:03:07 2025"], "for people"),
    "nvidia-smi noheader": ([f"{AT}0.123, 0, 83.17 W"], "noheader"),
    "nvidia-smi without time": (["index, power.draw [W]", "0, 83.17 W"], "no timestamp"),
    "nvidia-smi of two GPUs": ([SMI, *OF_TWO], "values of 0, 1; choose by --meter-column 0"),
    "nvidia-smi of GPUs without a name": (["timestamp, power.draw [W]", *UNNAMED], "log the index"),
    "nvidia-smi of GPUs of one name": (
        ["timestamp, name, power.draw [W]", *(line.replace(", ", ", NVIDIA X, ") for line in UNNAMED)],
        "log the index",
    ),
    "turbostat of cores": (
        ["Time_Of_Day_Seconds\tCPU\tCorWatt", "1790000000.1\t-\t9.1", "1790000001.1\t-\t9.1"],
        "values of CorWatt; choose by --meter-column CorWatt",
    ),
    "ipmitool": (["", "    Instantaneous power reading:      203 Watts"], "IPMI"),
    "ipmitool sdr": (["Inlet Temp | 23 degrees C | ok", "Pwr Consumption | 168 Watts | ok"], "IPMI"),
    "ipmi-dcmi": (["Current Power                        : 171 Watts"], "IPMI"),
    "Tasmota": (['{"Time":"2026-03-29T02:30:00","ENERGY":{"Total":8.2,"Power":31}}'], "Tasmota"),
    "CodeCarbon": (CODECARBON, "a row a run"),
    "ptd_logs": (["SPEC PTDaemon Tool 1.9.2", "03-29-2026 02:30:00.000: hello"], "spl.txt"),
    "turbostat without time": (["Core\tCPU\tBusy%\tPkgWatt", "-\t-\t5.1\t200.1"], "--enable Time_Of_Day_Seconds"),
    "tegrastats without time": (["RAM 1422/3956MB (lfb 207x4MB) CPU [17%@204] POM_5V_IN 2140/2150"], "no time"),
    "tegrastats without rails": (["03-29-2026 02:30:00 RAM 1422/3956MB (lfb 2x4MB) CPU [17%@204]"], "sudo"),
    "tegrastats without a total": (itertools.islice(tegrastats("GPU {0}/{0} CPU 311/311"), 5), "--meter-column GPU"),
    "perf stat to its terminal": (itertools.islice(perf(starts=False), 5), "-o FILE"),
    "a day first": (DAY_FIRST, "line 1: '29-03-2026 02:30:00.000' is not"),
    "a clock that was set back": ([SMI, f"{AT}5.0, 0, 8 W", f"{AT}4.0, 0, 8 W"], "line 3: its time is not later"),
    "nothing known": (["Datum;Leistung", "1;2"], "the header is 'Datum;Leistung'"),
    "rows of nothing": ([SMI, f"{AT}5.0, 0, [N/A]", f"{AT}6.0, 0, [N/A]"], "fewer than two readings"),
    "a header alone": ([SMI], "fewer than two readings"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_work_is_one_line(tmp_path, kind):
    lines, why = REFUSED[kind]
    (tmp_path / "log").write_text(with_lines(*lines))
    assert why in refused(read_meter, tmp_path / "log", zone_named("+02:00"))


def test_times_without_a_zone_need_one_and_an_unknown_column_is_named(tmp_path):
    (tmp_path / "log").write_text(with_lines(*itertools.islice(nvidia_smi(), 9)))
    assert "--meter-zone" in refused(read_meter, tmp_path / "log")
    assert "--meter-column 3: " in refused(read_meter, tmp_path / "log", BERLIN, ["3"])
    assert "no zone has this name" in refused(zone_named, "Middle/Earth")
    assert "no zone has this name" in refused(zone_named, "+31:00")
    assert "did you mean Europe/Berlin?" in refused(zone_named, "Berlin")
    assert "did you mean Europe/Berlin?" in refused(zone_named, "Europe/Berln")


def test_a_long_log_shows_by_its_own_clock_whether_a_zone_is_right(folder):
    lines = ["time,power_w", *(f"{local(second, '%Y-%m-%d %H:%M:%S')},{watts(second):.1f}" for second in seconds(1.0))]
    (folder / "log").write_text(with_lines(*lines))
    run = metered_run()
    run.state.before.facts["clock_synchronized"] = False
    b.write(folder / "run.json", run)
    _, document = compared(*ZONE)
    notes = {note["what"]["code"]: note["what"]["values"] for note in document["notes"]}
    begin, end = local(0, "%Y-%m-%d %H:%M:%S"), local(RUN_S, "%H:%M:%S")
    assert notes["meter_zone"] == {"file": "log", "profile": "run", "begin": begin, "end": end}
    assert notes["meter_clock"] == {"file": "log", "profile": "run"}
    assert "give --meter FILE" in refusal(kit("compare", "run.json", "--meter-zone", "UTC"))


def test_a_gap_of_one_of_two_gpus_is_a_gap_of_both(tmp_path):
    lines = nvidia_smi(rows=2)
    lost = [
        line.rpartition(", 1, ")[0] + ", 1, [N/A], 5 %" if ", 1, " in line and 800 < number < 1600 else line
        for number, line in enumerate(lines)
    ]
    (tmp_path / "log").write_text(with_lines(*lost))
    together = read_meter(tmp_path / "log", BERLIN, ["0", "1"])
    assert np.diff(together.at_ns).max() > 90 * 10**9
    assert read_meter(tmp_path / "log", BERLIN, ["0"]).spacing_ns == 250_000_000


def test_a_column_may_be_of_one_of_several_logs_and_a_socket_has_one_event(folder):
    (folder / "log").write_text(with_lines(*nvidia_smi(rows=2)))
    (folder / "wall").write_text(with_lines(*of_the_wall(86_400.0)))
    b.write(folder / "run.json", metered_run(device="gpu"))
    rows, _ = compared("--meter", "wall", *ZONE, "--meter-column", "0")
    assert rows["torch"]["numbers"]["energy_sensors"] == "meter.gpu"
    (folder / "log").write_text(with_lines(*perf(sockets=2)))
    read = read_meter(folder / "log", BERLIN, ["S0"])
    assert np.diff(read.values)[:100].mean() / 0.5 == pytest.approx(watts(0) / 2, rel=0.1)


def test_a_windows_shell_writes_utf_16(tmp_path):
    (tmp_path / "log").write_text(with_lines(*nvidia_smi()).replace("\n", "\r\n"), encoding="utf-16")
    assert read_meter(tmp_path / "log", BERLIN).spacing_ns == 250_000_000


@pytest.mark.parametrize(("offset_s", "works"), [((7200, 7200), True), ((3600, 7200), False), ((None, None), False)])
def test_the_zone_of_the_run_is_what_its_machine_had(folder, offset_s, works):
    b.write(folder / "run.json", run := metered_run(device="gpu"))
    after_change = BEGIN + timedelta(hours=1)  # Europe's clocks have gone forward by then
    states = [
        replace(state, facts=state.facts | ({} if offset is None else {"utc_offset_s": offset}))
        for state, offset in zip((run.state.before, run.state.after), offset_s, strict=True)
    ]
    run.state = replace(run.state, before=states[0], after=states[1])
    b.write(folder / "run.json", run)
    zone = zone_named("+02:00")
    (folder / "log").write_text(
        with_lines(*(line.replace(local(0, "%Y/%m/%d 01"), local(0, "%Y/%m/%d 02")) for line in nvidia_smi()))
    )
    assert after_change.astimezone(zone).hour == 3
    if works:
        rows, _ = compared("--meter-zone", "run")
        assert rows["torch"]["numbers"]["energy_launches"] == 3
    else:
        ended = kit("compare", "run.json", "--meter", "log", "--meter-zone", "run")
        assert "--meter-zone run: run " in refusal(ended)


@pytest.mark.parametrize("step_s", [1.0, 0.25])
def test_a_change_to_summer_time_and_back_within_a_log_leaves_no_gap(step_s):
    for begin in (datetime(2026, 3, 29, 0, 50, tzinfo=UTC), datetime(2026, 10, 25, 0, 50, tzinfo=UTC)):
        moments = [begin + timedelta(seconds=step_s * number) for number in range(6000)]
        texts = [f"{moment.astimezone(BERLIN):%Y-%m-%d %H:%M:%S.%f}" for moment in moments]
        read = utc_ns(texts, BERLIN, -1)
        assert read.tolist() == [round(moment.timestamp() * 1e3) * 10**6 for moment in moments]
        fixed = utc_ns(texts, zone_named("+01:00"), -1)
        assert np.abs(np.diff(fixed)).max() > 3000 * 10**9  # which the order of times shows, or a hole


@pytest.mark.parametrize(
    "texts",
    [
        ["2026-01-31T23:59:59+01:00", "2026-02-01T00:00:00+01:00"],
        ["2026/01/31 23:59:59.999", "2026/02/01 00:00:00.000"],
        ["01-31-2026 23:59:59.5", "02-01-2026 00:00:00.5"],
        ["2026-01-31 23:59:59,123456", "2026-02-01 00:00:00,123456"],
        ["2026-01-31T23:59:59+01:00", "2026-02-01T05:30:00.5+05:30"],
        ["2026-01-31T23:59:59Z", "2026-02-01T00:00:00+00:00"],
    ],
)
def test_many_times_at_once_are_what_each_is_by_itself(texts):
    together = utc_ns(texts, BERLIN, -1)
    assert together.tolist() == [utc_ns([text], BERLIN, -1)[0] for text in texts]
    iso = [text.replace("/", "-").replace(",", ".") for text in texts]
    for at_ns, text in zip(together.tolist(), iso, strict=True):
        known = datetime.strptime(text, "%m-%d-%Y %H:%M:%S.%f") if text[2] == "-" else datetime.fromisoformat(text)
        moment = known.replace(tzinfo=known.tzinfo or BERLIN)
        assert at_ns == (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


NO_TIMES = ["2026-02-30T00:00:00Z", "now", "2026-01-01T00:00:00Z x", "1 1e300", "2026-01-01T25:00:00Z"]


@pytest.mark.parametrize("texts", [*map(str.split, NO_TIMES), ["2026-01-01T00:00:61Z"], ["2026-01-01T00:00:00Zé"]])
def test_what_is_no_time_is_named(texts):
    with pytest.raises(UnreadableError) as error:
        utc_ns(texts, None, -1)
    assert error.value.index == len(texts) - 1


def test_a_log_of_boards_says_nothing_of_processors_and_counts_its_boards(folder):
    (folder / "log").write_text(with_lines(*nvidia_smi(rows=2)))
    b.write(folder / "run.json", metered_run(own_w=50.0, device="cpu"))
    rows, document = compared(*ZONE, "--meter-column", "0")
    assert rows["torch"]["numbers"].get("energy_power_w") is None
    whys = [note["because"]["code"] for note in document["notes"] if note["what"]["code"] == "energy_refused"]
    assert whys == ["meter_of_other_device"]
    b.write(folder / "run.json", metered_run(own_w=50.0, device="gpu"))
    rows, document = compared(*ZONE, "--meter-column", "0", "--meter-column", "1")
    assert rows["torch"]["numbers"]["energy_refusal"] == "meter_of_other_count"


def of_the_wall(after_s):
    return ["time,power_w", *(f"{BEGIN.timestamp() + after_s + second},{watts(second)}" for second in seconds(0.5))]


def test_rows_by_logs_of_different_coverage_are_never_compared(folder):
    (folder / "log").write_text(with_lines(*nvidia_smi()))
    (folder / "wall").write_text(with_lines(*of_the_wall(86_400.0)))
    b.write(folder / "run.json", metered_run(device="gpu"))
    b.write(folder / "later.json", metered_run(device="gpu", id="later", after_s=86_400.0))
    both = (
        "compare",
        "run.json",
        "later.json",
        "--meter",
        "log",
        "--meter",
        "wall",
        *ZONE,
        "--metric",
        "energy_per_sample",
    )
    document = json.loads(kit(*both, "--format", "json").stdout)
    rows = [row for group in document["groups"] for row in group["rows"]]
    assert all(row["numbers"]["energy_per_sample_j"] for row in rows)
    assert {row["side"]: row["numbers"]["energy_sensors"] for row in rows} == {
        "run": "meter.gpu",
        "later": "meter.wall",
    }
    assert not any(row["versus"] and row["versus"]["count"] for row in rows)
    # By two logs of the wall they are.
    (folder / "log").write_text(with_lines(*of_the_wall(0.0)))
    rows = [row for group in json.loads(kit(*both, "--format", "json").stdout)["groups"] for row in group["rows"]]
    assert sum(bool(row["versus"] and row["versus"]["count"]) for row in rows) == 2
    assert "cover the same" in refusal(kit("compare", "run.json", "--meter", "log", "--meter", "log"))
