/* A counter's ticks against CLOCK_MONOTONIC_RAW.
 *
 *     raw ─ tick ─ raw ............ span ............ raw ─ tick ─ raw
 *     └ bracket ┘                                     └ bracket ┘
 *
 * The tick fell somewhere inside its bracket, so the tightest of several is the best known instant.
 */
#include "clock_read.h"

typedef struct {
    int64_t ticks;
    int64_t before_ns;
    int64_t after_ns;
} bracket;

static bracket tightest_bracket(kit_clock_source source, int brackets) {
    bracket tightest = {0, 0, INT64_MAX};
    for (int i = 0; i < brackets; i++) {
        bracket one;
        one.before_ns = kit_read_monotonic_raw();
        one.ticks = kit_read_end(source);
        one.after_ns = kit_read_monotonic_raw();
        if (one.after_ns - one.before_ns < tightest.after_ns - tightest.before_ns) {
            tightest = one;
        }
    }
    return tightest;
}

/* Asleep, not spinning: the counter has to keep its pace through idle states, so let them happen. */
static void sleep_until(int64_t raw_ns) {
    int64_t left_ns;
    while ((left_ns = raw_ns - kit_read_monotonic_raw()) > 0) {
        struct timespec left = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
        nanosleep(&left, NULL);
    }
}

kit_clock_calibration kit_clock_calibrate(kit_clock_source source, int64_t span_ns, int brackets) {
    bracket first = tightest_bracket(source, brackets);
    sleep_until(first.after_ns + span_ns);
    bracket last = tightest_bracket(source, brackets);
    int64_t first_width_ns = first.after_ns - first.before_ns;
    int64_t last_width_ns = last.after_ns - last.before_ns;
    kit_clock_calibration calibration = {
        .ticks = last.ticks - first.ticks,
        .span_ns = last.before_ns + last_width_ns / 2 - first.before_ns - first_width_ns / 2,
        .uncertainty_ns = (first_width_ns + last_width_ns + 1) / 2,
    };
    return calibration;
}
