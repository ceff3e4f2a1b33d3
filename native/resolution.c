/* The smallest positive change of a clock. clock_getres is a constant of the kernel, not a measurement. */
#include "clock_read.h"

KIT_INLINE int64_t smallest_change(kit_clock_source source, size_t reads) {
    int64_t smallest = 0;
    int64_t previous = kit_read_end(source);
    for (size_t i = 1; i < reads || smallest == 0; i++) {
        int64_t now = kit_read_end(source);
        int64_t change = now - previous;
        if (change > 0 && (smallest == 0 || change < smallest)) {
            smallest = change;
        }
        previous = now;
    }
    return smallest;
}

int64_t kit_clock_resolution(kit_clock_source source, size_t reads) {
    switch (source) {
    case KIT_TSC:
        return smallest_change(KIT_TSC, reads);
    case KIT_CNTVCT:
        return smallest_change(KIT_CNTVCT, reads);
    default:
        return smallest_change(KIT_MONOTONIC_RAW, reads);
    }
}
