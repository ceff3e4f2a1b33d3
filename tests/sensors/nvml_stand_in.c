/* Stands in for libnvidia-ml.so.1 where there is no GPU: one board, 200 W, energy counter fresh every 100 ms.
   NVML_STAND_IN names what goes wrong: no_driver, no_permission, mismatch, no_gpu, no_energy, no_instant, power_capped,
   no_clock_events, no_application_clock. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, DRIVER_NOT_LOADED = 9, MISMATCH = 18 };

typedef struct { unsigned int fieldId, scopeId; int64_t timestamp, latencyUsec; int valueType, nvmlReturn;
                 union { double d; unsigned int ui; unsigned long long ull; } value; } field_t;
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned int gpu, memory; } utilization_t;

static int wrong(const char *what) { const char *m = getenv("NVML_STAND_IN"); return m && strcmp(m, what) == 0; }
static uint64_t milliseconds(void) {
    struct timespec t; clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    if (wrong("no_driver")) return DRIVER_NOT_LOADED;
    if (wrong("no_permission")) return NO_PERMISSION;
    if (wrong("mismatch")) return MISMATCH;
    return SUCCESS;
}
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { (void)code; return "stand-in error"; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = wrong("no_gpu") ? 0 : 1; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) { *device = (void *)(uintptr_t)(index + 1); return SUCCESS; }
int nvmlDeviceGetName(void *device, char *name, unsigned int length) { (void)device; strncpy(name, "Stand-in H100", length); return SUCCESS; }
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned int length) { (void)device; strncpy(uuid, "GPU-stand-in", length); return SUCCESS; }
int nvmlSystemGetDriverVersion(char *version, unsigned int length) { strncpy(version, "570.1", length); return SUCCESS; }
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *energy_mj) {
    (void)device;
    if (wrong("no_energy")) return NOT_SUPPORTED;
    *energy_mj = milliseconds() / 100 * 20000; /* 200 W x 100 ms = 20 J */
    return SUCCESS;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned int *power_mw) { (void)device; *power_mw = 190000; return SUCCESS; }
int nvmlDeviceGetFieldValues(void *device, int count, field_t *fields) {
    (void)device;
    for (int i = 0; i < count; i++) {
        fields[i].nvmlReturn = wrong("no_instant") || fields[i].fieldId != 186 ? NOT_SUPPORTED : SUCCESS;
        fields[i].valueType = 1;
        fields[i].value.ui = 200000;
    }
    return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(void *device, utilization_t *rates) { (void)device; rates->gpu = 87; rates->memory = 12; return SUCCESS; }
int nvmlDeviceGetMemoryInfo(void *device, memory_t *memory) {
    (void)device; memory->total = 80ull << 30; memory->used = 3ull << 30; memory->free = 77ull << 30; return SUCCESS;
}
int nvmlDeviceGetClockInfo(void *device, int type, unsigned int *mhz) { (void)device; *mhz = type == 1 ? 1755 : 0; return SUCCESS; }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *celsius) { (void)device; (void)sensor; *celsius = 54; return SUCCESS; }
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *mask) {
    (void)device;
    if (wrong("no_clock_events")) return NOT_SUPPORTED;
    *mask = wrong("power_capped") ? 0x4 : 0x1; /* else idle */
    return SUCCESS;
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *mw) { (void)device; *mw = 230000; return SUCCESS; }
int nvmlDeviceGetPowerManagementDefaultLimit(void *device, unsigned int *mw) { (void)device; *mw = 700000; return SUCCESS; }
int nvmlDeviceGetApplicationsClock(void *device, int type, unsigned int *mhz) {
    (void)device; (void)type;
    if (wrong("no_application_clock")) return NOT_SUPPORTED;
    *mhz = 1400;
    return SUCCESS;
}
