"""Builds kit._clock: what the certificate needs from C, through cffi's API mode.

A cffi call releases the GIL, so nothing here belongs between two steps: stamps are kit._stamp's.
"""

from cffi import FFI

SOURCES = [
    "native/clock_source.c",
    "native/resolution.c",
    "native/null_interval.c",
    "native/calibrate.c",
]

ffibuilder = FFI()
ffibuilder.cdef("""
    typedef enum { KIT_MONOTONIC_RAW, KIT_TSC, KIT_CNTVCT } kit_clock_source;
    typedef struct { int64_t ticks; int64_t span_ns; int64_t uncertainty_ns; } kit_clock_calibration;

    int kit_clock_has_source(kit_clock_source source);
    int kit_clock_has_invariant_tsc(void);
    int kit_clock_has_rdtscp(void);
    int64_t kit_clock_nominal_hz(void);
    int64_t kit_clock_read(kit_clock_source source);
    int64_t kit_clock_resolution(kit_clock_source source, size_t reads);
    void kit_clock_null_intervals(kit_clock_source source, int64_t *intervals, size_t count);
    kit_clock_calibration kit_clock_calibrate(kit_clock_source source, int64_t span_ns, int brackets);
""")
ffibuilder.set_source(
    "kit._clock",
    '#include "clock.h"',
    sources=SOURCES,
    include_dirs=["native"],
    depends=["native/clock.h", "native/clock_read.h"],
    extra_compile_args=["-O2", "-Wall", "-Wextra", "-Werror=implicit-function-declaration"],
)

if __name__ == "__main__":
    ffibuilder.compile(verbose=True)
