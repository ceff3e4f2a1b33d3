/* Which clocks this processor has, and what it says of them. */
#include "clock_read.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* AMD APM vol. 3, appendix E; Intel SDM vol. 2A, CPUID. */
#define CPUID_EXTENDED_FEATURES 0x80000001u
#define CPUID_EDX_RDTSCP (1u << 27)
#define CPUID_POWER_MANAGEMENT 0x80000007u
#define CPUID_EDX_INVARIANT_TSC (1u << 8)

static int cpuid_edx_has(unsigned leaf, unsigned bit) {
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(leaf, &eax, &ebx, &ecx, &edx) && (edx & bit) != 0;
}
#endif

int kit_clock_has_source(kit_clock_source source) {
    switch (source) {
    case KIT_MONOTONIC_RAW:
        return 1;
#if defined(__x86_64__)
    case KIT_TSC:
        return 1;
#endif
#if defined(__aarch64__)
    case KIT_CNTVCT:
        return 1;
#endif
    default:
        return 0;
    }
}

int kit_clock_has_invariant_tsc(void) {
#if defined(__x86_64__)
    return cpuid_edx_has(CPUID_POWER_MANAGEMENT, CPUID_EDX_INVARIANT_TSC);
#else
    return 0;
#endif
}

int kit_clock_has_rdtscp(void) {
#if defined(__x86_64__)
    return cpuid_edx_has(CPUID_EXTENDED_FEATURES, CPUID_EDX_RDTSCP);
#else
    return 0;
#endif
}

int64_t kit_clock_nominal_hz(void) {
#if defined(__aarch64__)
    uint64_t hz;
    __asm__ __volatile__("mrs %0, cntfrq_el0" : "=r"(hz));
    return (int64_t)(hz & 0xffffffffu); /* the upper half is reserved */
#else
    return 0;
#endif
}

int64_t kit_clock_read(kit_clock_source source) {
    return kit_read_end(source);
}
