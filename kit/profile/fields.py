"""What a field of a profile may hold: a number or a name by its kind, or the reason why it is null.

msgspec checks the types of fields as it decodes. A limit is what no machine and no run reaches. It keeps sums within
64 bits, and out of reports what nobody measured. `kit.profile.consistency` checks what depends on a second field,
and `kit.report.reasons_in_words` writes the sentences of reasons.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

# No machine has been up for a century, and no launch takes a year.
CENTURY_NS: Final = 36_525 * 86_400 * 10**9
YEAR_NS: Final = 366 * 86_400 * 10**9
# Up to here a float holds every whole number; a memory of so many bytes (9 PB) is far from being built.
COUNT_MAX: Final = 2**53
# A rack of accelerators takes some 100 kW.
WATTS_MAX: Final = 1e6
# Nothing is colder than 0 K; silicon melts at 1414 degrees.
CELSIUS_MIN, CELSIUS_MAX = -273.15, 1414.0
# Clocks of processors are a few thousand.
MHZ_MAX: Final = 1e6
# Linux numbers at most 8,192 CPUs; a larger list in a file would fill the memory.
CPU_MAX: Final = 1 << 16
# No accelerator's memory holds a batch of so many samples.
BATCH_MAX: Final = 2**40
# A parameter is a width, a length or a depth of a network.
PARAMETER_MAX: Final = 2**31 - 1
# A round takes seconds at least, so that these take weeks.
ROUNDS_MAX: Final = 1_000_000

# JSON has no largest integer, but arithmetic has one: a longer one overflows where it is divided.
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]
# A lead-in takes milliseconds, and steps that are waited for one by one do not take long, either.
FewSteps = Annotated[int, Meta(ge=0, le=10**9)]
# A sensor is read some hundred times a second.
FewSamples = FewSteps
RepeatCount = Annotated[int, Meta(ge=1, le=10**9)]
Difference = Annotated[int, Meta(ge=-COUNT_MAX, le=COUNT_MAX)]
Positive = Annotated[int, Meta(ge=1, le=COUNT_MAX)]
Round = Annotated[int, Meta(ge=0, le=ROUNDS_MAX)]
CpuNumber = Annotated[int, Meta(ge=0, le=CPU_MAX)]
ThreadCount = Annotated[int, Meta(ge=1, le=CPU_MAX)]  # of devices and hosts, too
Parameter = Annotated[int, Meta(ge=0, le=PARAMETER_MAX)]
Batch = Annotated[int, Meta(ge=0, le=BATCH_MAX)]  # 0: a document does not say it

StampNs = Annotated[int, Meta(ge=0, le=CENTURY_NS)]  # of a clock that began with the machine
SpanNs = Annotated[int, Meta(ge=0, le=YEAR_NS)]
SignedSpanNs = Annotated[int, Meta(ge=-YEAR_NS, le=YEAR_NS)]  # such as a lag that noise shows as less than none
TimeNs = Annotated[int, Meta(ge=1, le=YEAR_NS)]  # of something that was done

# Wider than that, an interval says nothing of a ratio.
PRECISION_MAX_PCT: Final = 1e6
Precision = Annotated[float, Meta(gt=0, le=PRECISION_MAX_PCT)]
Percent = Annotated[float, Meta(ge=0, le=100)]
Seconds = Annotated[float, Meta(ge=0, le=YEAR_NS / 1e9)]
Fraction = Annotated[float, Meta(ge=0, le=1)]
# An error may be many times what was measured.
ErrorShare = Annotated[float, Meta(ge=0, le=1e6)]
Quantity = Annotated[float, Meta(ge=0, le=1e18)]
Signed = Annotated[float, Meta(ge=-1e18, le=1e18)]
MeanNs = Annotated[float, Meta(ge=0, le=YEAR_NS)]
# What others are divided by.
Divisor = Annotated[float, Meta(gt=0, le=1e18)]
DivisorNs = Annotated[float, Meta(gt=0, le=YEAR_NS)]
Watts = Annotated[float, Meta(ge=0, le=WATTS_MAX)]
EnergyJ = Annotated[float, Meta(ge=0, le=WATTS_MAX * YEAR_NS / 1e9)]
Celsius = Annotated[float, Meta(ge=CELSIUS_MIN, le=CELSIUS_MAX)]
MHz = Annotated[float, Meta(ge=0, le=MHZ_MAX)]

# Names become parts of keys, between slashes, and of names of files. The end is no `$`, which also matches before a
# newline. A program has the name of its function, in any script.
Name = Annotated[str, Meta(pattern=r"^[^/\\\x00-\x1f\x7f]{1,200}(?![\s\S])")]
VariantName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}(?![\s\S])")]
FileName = Annotated[str, Meta(pattern=r"^[^/\\\x00-\x1f\x7f]{1,255}(?![\s\S])")]
Value = Int64 | float | str


class Reason(Struct, frozen=True, kw_only=True):
    """A code, such as ``cgroup_throttled``, and the values that go with it, units in their names."""

    code: str
    values: dict[str, Value] = {}


def reason(code: str, **values: Value) -> Reason:
    """``reason("too_short", window_s=2.0, needed_s=10.0)``."""
    return Reason(code=code, values=values)
