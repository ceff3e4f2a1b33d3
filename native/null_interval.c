/* What the clock reads when nothing is timed: the floor under every interval. */
#include "clock_read.h"

KIT_INLINE void time_nothing(kit_clock_source source, int64_t *intervals, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int64_t begin = kit_read_begin(source);
        intervals[i] = kit_read_end(source) - begin;
    }
}

void kit_clock_null_intervals(kit_clock_source source, int64_t *intervals, size_t count) {
    switch (source) {
    case KIT_TSC:
        time_nothing(KIT_TSC, intervals, count);
        break;
    case KIT_CNTVCT:
        time_nothing(KIT_CNTVCT, intervals, count);
        break;
    default:
        time_nothing(KIT_MONOTONIC_RAW, intervals, count);
    }
}
