/* The clock's C face, shared by the cffi module kit._clock and the stamp buffer kit._stamp. */
#ifndef KIT_CLOCK_H
#define KIT_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* What a stamp reads. */
typedef enum {
    KIT_MONOTONIC_RAW = 0, /* CLOCK_MONOTONIC_RAW, nanoseconds */
    KIT_TSC = 1,           /* x86-64 time stamp counter, ticks */
    KIT_CNTVCT = 2         /* aarch64 virtual counter, ticks */
} kit_clock_source;

/* Counter ticks against CLOCK_MONOTONIC_RAW between two instants, each known to within its bracket. */
typedef struct {
    int64_t ticks;            /* counter ticks from the first instant to the second */
    int64_t span_ns;          /* nanoseconds from the first instant to the second */
    int64_t uncertainty_ns;   /* most that span_ns can be off: half of each bracket's width */
} kit_clock_calibration;

/* clock_source.c */
int kit_clock_has_source(kit_clock_source source); /* 1 if this processor architecture has it */
int kit_clock_has_invariant_tsc(void);             /* 1 if CPUID says so; 0 elsewhere than x86-64 */
int kit_clock_has_rdtscp(void);                    /* 1 if CPUID says so; 0 elsewhere than x86-64 */
int64_t kit_clock_nominal_hz(void);                /* cntfrq_el0; 0 elsewhere than aarch64 */
int64_t kit_clock_read(kit_clock_source source);   /* one read, in the source's own unit */

/* resolution.c: smallest positive change between consecutive reads: `reads` of them, or more until one is seen. */
int64_t kit_clock_resolution(kit_clock_source source, size_t reads);

/* null_interval.c: `count` intervals with nothing between begin and end, in the source's own unit. */
void kit_clock_null_intervals(kit_clock_source source, int64_t *intervals, size_t count);

/* calibrate.c: `brackets` two-sided reads at each end of at least `span_ns`; the tightest of each end counts. */
kit_clock_calibration kit_clock_calibrate(kit_clock_source source, int64_t span_ns, int brackets);

#endif
