/* Reading a clock, inline: what stands between two instructions of the measured program.
 *
 *     begin │ measured instructions │ end
 *
 * Neither read may overlap what is measured, so each is fenced. An `end` also keeps later instructions from starting
 * before it, so where steps follow one another one `end` both ends a step and begins the next.
 */
#ifndef KIT_CLOCK_READ_H
#define KIT_CLOCK_READ_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CLOCK_MONOTONIC_RAW */
#endif
#include <time.h>

#include "clock.h"

/* Inlined always: with a constant source the switches below are gone. */
#define KIT_INLINE static inline __attribute__((always_inline))

/* Nanoseconds. Through the vDSO, without entering the kernel, since Linux 5.3. */
KIT_INLINE int64_t kit_read_monotonic_raw(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#if defined(__x86_64__)
/* Intel SDM vol. 2B, RDTSC: LFENCE before, so that earlier instructions have executed; LFENCE after, so that later
 * ones have not begun. */
KIT_INLINE int64_t kit_read_tsc_begin(void) {
    uint32_t low, high;
    __asm__ __volatile__("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
    return (int64_t)((uint64_t)high << 32 | low);
}

/* Intel SDM vol. 2B, RDTSCP: waits by itself until earlier instructions have executed. */
KIT_INLINE int64_t kit_read_tsc_end(void) {
    uint32_t low, high;
    __asm__ __volatile__("rdtscp\n\tlfence" : "=a"(low), "=d"(high) : : "rcx", "memory");
    return (int64_t)((uint64_t)high << 32 | low);
}
#endif

#if defined(__aarch64__)
/* Arm ARM D12.1.2: reads of the counter may be taken early; ISB keeps them after earlier instructions. */
KIT_INLINE int64_t kit_read_cntvct(void) {
    uint64_t ticks;
    __asm__ __volatile__("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
    return (int64_t)ticks;
}
#endif

/* Every source but the TSC is read alike at begin and end. A source that this architecture lacks is refused by
 * kit_clock_has_source before it comes here. */
KIT_INLINE int64_t kit_read_other(kit_clock_source source) {
    switch (source) {
#if defined(__aarch64__)
    case KIT_CNTVCT:
        return kit_read_cntvct();
#endif
    default:
        return kit_read_monotonic_raw();
    }
}

KIT_INLINE int64_t kit_read_begin(kit_clock_source source) {
    switch (source) {
#if defined(__x86_64__)
    case KIT_TSC:
        return kit_read_tsc_begin();
#endif
    default:
        return kit_read_other(source);
    }
}

KIT_INLINE int64_t kit_read_end(kit_clock_source source) {
    switch (source) {
#if defined(__x86_64__)
    case KIT_TSC:
        return kit_read_tsc_end();
#endif
    default:
        return kit_read_other(source);
    }
}

#endif
