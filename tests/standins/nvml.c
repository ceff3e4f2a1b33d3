/* Stands in for libnvidia-ml.so.1 where there is no GPU.
   NVML_BOARDS (1)            boards; board i draws (i + 1) times NVML_WATTS and has bus id 65 + i
   NVML_WATTS (200)
   NVML_PERIOD_MS (100)       the energy counter is fresh so often
   NVML_QUANTUM_MJ (1)        and rises in multiples of this
   NVML_ENERGY_PCT (100)      of what is drawn is counted
   NVML_RIPPLE_PCT (0)        by so much power goes up and down, in a straight line, every NVML_RIPPLE_MS (1700)
   NVML_LOAD (none)           a file of 64-bit integers: how many loads, 0, then begin and end of each in nanoseconds;
                              where there is one, a board draws NVML_WATTS during them only
   NVML_IDLE_WATTS (72), NVML_IDLE_MHZ (345)  and these otherwise
   NVML_DELAY_MS (0), NVML_WINDOW_MS (0)      the energy counter comes so late, and is of a mean over so long
   NVML_POWER_DELAY_MS (0), NVML_POWER_WINDOW_MS (1), NVML_POWER_PERIOD_MS (1), NVML_POWER_PCT (100)  the same of power
   NVML_CAP_W (230)           power limit that is enforced, of 700
   NVML_LOST_AFTER_MS (never) after the first call: every board is lost
   NVML_LOST_AT_LOAD (never)  the same when so many loads have begun
   NVML_EXCLUSIVE (0)         the board that only one process may hold, with exclusive
   NVML_PROCESSES (0)         that compute on each board
   NVML_GONE (none)           the board that has fallen off its bus
   NVML_CLOCK_MHZ (1755)      of its processors, of 1980
   NVML_BUSY_PCT (87)         utilization
   NVML_NODE_CPUS (none)      of each node of memory, and NVML_NODE_BOARDS (1) of its boards
   NVML_POWER_VIOLATION_PCT (0), NVML_THERMAL_VIOLATION_PCT (0)  of the time that its violation counters rise
   NVML_SM_PCT (60), NVML_TENSOR_PCT (40), NVML_FP32_PCT (5), NVML_DRAM_PCT (30)  what GPM says that they were active
   NVML_PCIE_WIDTH (16)       lanes, of 16
   NVML_ECC_ERRORS (0)        uncorrected
   NVML_REMAPPED (0), NVML_REMAP_FAILED (0)  rows
   NVML_THROTTLED_MHZ (none)  its clock from a second after the first look at it, in a process
   NVML_REASONS (1)           mask of what slows it: idle
   NVML_STAND_IN names what goes wrong: no_driver, no_permission, mismatch, no_gpu, no_energy, no_instant, power_capped,
   no_clock_events, no_application_clock, no_gpm, no_violations, exclusive, mig, constant_energy, zero_energy, falling_energy, zero_power.
   Compiled with -DOLD_DRIVER it lacks the functions that came last. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, LOST = 15, MISMATCH = 18 };

typedef struct { unsigned int fieldId, scopeId; int64_t timestamp, latencyUsec; int valueType, nvmlReturn;
                 union { double d; unsigned int ui; unsigned long long ull; } value; } field_t;
typedef struct { unsigned long long total, free, used; } memory_t;
typedef struct { unsigned int gpu, memory; } utilization_t;

static int wrong(const char *what) { const char *m = getenv("NVML_STAND_IN"); return m && strcmp(m, what) == 0; }
static uint64_t milliseconds(void) {
    struct timespec t; clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *m = getenv(name); return m ? strtoull(m, NULL, 10) : otherwise;
}
static unsigned board(void *device) { return (unsigned)(uintptr_t)device - 1; }
static uint64_t watts(void *device) { return setting("NVML_WATTS", 200) * (board(device) + 1); }
static const int64_t *loads(void) {
    static const int64_t *file; static int looked;
    if (!looked++ && getenv("NVML_LOAD")) {
        int descriptor = open(getenv("NVML_LOAD"), O_RDONLY);
        file = mmap(NULL, 65536, PROT_READ, MAP_SHARED, descriptor, 0);
    }
    return file;
}
static int lost(void) {
    static uint64_t first;
    if (!first) first = milliseconds();
    if (loads() && loads()[0] >= (int64_t)setting("NVML_LOST_AT_LOAD", INT64_MAX)) return 1;
    return milliseconds() - first > setting("NVML_LOST_AFTER_MS", UINT64_MAX);
}
static double loaded_ms(double ms) { /* in all, until then */
    double sum = 0;
    for (int64_t i = 1; i <= loads()[0]; i++) {
        double begin = loads()[2 * i] / 1e6, end = loads()[2 * i + 1] / 1e6;
        if (ms > begin) sum += (ms < end ? ms : end) - begin;
    }
    return sum;
}
static double drawn_mj(void *device, double ms) { /* until then: W x ms = mJ */
    double idle = setting("NVML_IDLE_WATTS", 72), base = loads() ? idle * ms + (watts(device) - idle) * loaded_ms(ms) : watts(device) * ms;
    double t = setting("NVML_RIPPLE_MS", 1700), p = ms / t - (uint64_t)(ms / t);
    double swung = p < 0.5 ? 2 * p * p - p : 3 * p - 2 * p * p - 1;
    return base + watts(device) * (setting("NVML_RIPPLE_PCT", 0) / 100. * t * swung);
}
static double drawn_mw(void *device) { /* a moving mean, as often as it is fresh */
    uint64_t period = setting("NVML_POWER_PERIOD_MS", 1);
    double now = milliseconds() / period * period - (double)setting("NVML_POWER_DELAY_MS", 0), window = setting("NVML_POWER_WINDOW_MS", 1);
    return 1000 * (drawn_mj(device, now) - drawn_mj(device, now - window)) / window * (setting("NVML_POWER_PCT", 100) / 100.);
}
static double counted_mj(void *device) { /* a moving mean's integral is the integral's moving mean */
    enum { POINTS = 64 };
    uint64_t period = setting("NVML_PERIOD_MS", 100);
    double now = milliseconds() / period * period - (double)setting("NVML_DELAY_MS", 0), window = setting("NVML_WINDOW_MS", 0), sum = 0;
    for (int i = 0; i < POINTS; i++) sum += drawn_mj(device, now - window * (i + 0.5) / POINTS);
    return sum / POINTS;
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
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = wrong("no_gpu") ? 0 : (unsigned)setting("NVML_BOARDS", 1); return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device) {
    if (index == setting("NVML_GONE", UINT64_MAX)) return LOST;
    *device = (void *)(uintptr_t)(index + 1); return SUCCESS;
}
int nvmlDeviceGetName(void *device, char *name, unsigned int length) { (void)device; strncpy(name, "Stand-in H100", length); return SUCCESS; }
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned int length) { snprintf(uuid, length, "GPU-stand-in-%u", board(device)); return SUCCESS; }
int nvmlSystemGetDriverVersion(char *version, unsigned int length) { strncpy(version, "570.1", length); return SUCCESS; }
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *energy_mj) {
    uint64_t quantum = setting("NVML_QUANTUM_MJ", 1);
    if (wrong("no_energy")) return NOT_SUPPORTED;
    if (lost()) return LOST;
    if (wrong("zero_energy") || wrong("constant_energy")) { *energy_mj = wrong("zero_energy") ? 0 : 123456; return SUCCESS; }
    if (wrong("falling_energy")) { *energy_mj = (1ull << 40) - milliseconds() * watts(device); return SUCCESS; }
    *energy_mj = (uint64_t)counted_mj(device) * setting("NVML_ENERGY_PCT", 100) / 100 / quantum * quantum;
    return SUCCESS;
}
typedef struct { char legacy[16]; unsigned int domain, bus, device, id, subsystem; char bus_id[32]; } pci_t;
int nvmlDeviceGetPciInfo_v3(void *device, pci_t *pci) {
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", 0x65 + board(device));
    return SUCCESS;
}
int nvmlDeviceGetMigMode(void *device, unsigned int *now, unsigned int *later) {
    (void)device; *now = *later = wrong("mig"); return SUCCESS;
}
int nvmlDeviceGetCpuAffinity(void *device, unsigned int words, unsigned long *mask) {
    uint64_t cpus = setting("NVML_NODE_CPUS", 0), node = board(device) / setting("NVML_NODE_BOARDS", 1);
    if (!cpus) return NOT_SUPPORTED;
    memset(mask, 0, words * sizeof *mask);
    for (uint64_t cpu = node * cpus; cpu < (node + 1) * cpus; cpu++) mask[cpu / 64] |= 1ul << cpu % 64;
    return SUCCESS;
}
int nvmlDeviceGetPersistenceMode(void *device, unsigned int *mode) { (void)device; *mode = 1; return SUCCESS; }
int nvmlDeviceGetComputeMode(void *device, unsigned int *mode) { *mode = wrong("exclusive") && board(device) == setting("NVML_EXCLUSIVE", 0) ? 3 : 0; return SUCCESS; }
int nvmlDeviceGetPowerUsage(void *device, unsigned int *power_mw) {
    if (lost()) return LOST;
    *power_mw = (unsigned)(drawn_mw(device) * 0.95); /* a mean that lags */
    return SUCCESS;
}
int nvmlDeviceGetFieldValues(void *device, int count, field_t *fields) {
    for (int i = 0; i < count; i++) {
        fields[i].nvmlReturn = lost() ? LOST : wrong("no_instant") || fields[i].fieldId != 186 ? NOT_SUPPORTED : SUCCESS;
        fields[i].valueType = 1;
        fields[i].value.ui = wrong("zero_power") ? 0 : (unsigned)drawn_mw(device);
    }
    return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(void *device, utilization_t *rates) { (void)device; rates->gpu = (unsigned)setting("NVML_BUSY_PCT", 87); rates->memory = 12; return SUCCESS; }
int nvmlDeviceGetMemoryInfo(void *device, memory_t *memory) {
    (void)device; memory->total = 80ull << 30; memory->used = 3ull << 30; memory->free = 77ull << 30; return SUCCESS;
}
int nvmlDeviceGetClockInfo(void *device, int type, unsigned int *mhz) {
    double now = milliseconds();
    (void)device;
    int idles = loads() && loaded_ms(now) == loaded_ms(now - 20);
    static double first; first = first ? first : now;
    uint64_t throttled_mhz = setting("NVML_THROTTLED_MHZ", 0);
    if (type == 1 && throttled_mhz && now - first >= 1000) { *mhz = (unsigned)throttled_mhz; return SUCCESS; }
    *mhz = type != 1 ? 0 : idles ? (unsigned)setting("NVML_IDLE_MHZ", 345) : (unsigned)setting("NVML_CLOCK_MHZ", 1755);
    return SUCCESS;
}
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned int *celsius) { (void)device; (void)sensor; *celsius = 54; return SUCCESS; }
int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned int *mhz) { (void)device; (void)type; *mhz = 1980; return SUCCESS; }
int nvmlDeviceGetEccMode(void *device, unsigned int *now, unsigned int *later) { (void)device; *now = *later = 1; return SUCCESS; }
int nvmlDeviceGetViolationStatus(void *device, int policy, unsigned long long *times) {
    struct timespec t; clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    uint64_t ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    (void)device;
    if (wrong("no_violations")) return NOT_SUPPORTED;
    times[0] = 9;
    times[1] = ns / 100 * setting(policy ? "NVML_THERMAL_VIOLATION_PCT" : "NVML_POWER_VIOLATION_PCT", 0) + (policy ? 0 : 7000);
    return SUCCESS;
}
int nvmlDeviceGetCurrPcieLinkWidth(void *device, unsigned int *lanes) { (void)device; *lanes = (unsigned)setting("NVML_PCIE_WIDTH", 16); return SUCCESS; }
int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned int *lanes) { (void)device; *lanes = 16; return SUCCESS; }
int nvmlDeviceGetCurrPcieLinkGeneration(void *device, unsigned int *generation) { (void)device; *generation = 1; return SUCCESS; }
int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned int *generation) { (void)device; *generation = 5; return SUCCESS; }
int nvmlDeviceGetTotalEccErrors(void *device, int error, int counter, unsigned long long *count) {
    (void)device; *count = error == 1 && counter == 0 ? setting("NVML_ECC_ERRORS", 0) : 99; return SUCCESS;
}
int nvmlDeviceGetRemappedRows(void *device, unsigned int *corrected, unsigned int *uncorrected, unsigned int *pending, unsigned int *failed) {
    (void)device; *corrected = 99; *uncorrected = (unsigned)setting("NVML_REMAPPED", 0); *pending = 0;
    *failed = (unsigned)setting("NVML_REMAP_FAILED", 0);
    return SUCCESS;
}
/* GPM: a sample holds its time; a difference of two that are the same, or in the wrong order, is refused. */
typedef struct { unsigned int version, supported; } gpm_support_t;
typedef struct { unsigned int id; int result; double value; const char *info[3]; } gpm_metric_t;
typedef struct { unsigned int version, count; uint64_t *first, *second; gpm_metric_t metrics[]; } gpm_metrics_t;
int nvmlGpmQueryDeviceSupport(void *device, gpm_support_t *support) { (void)device; support->supported = !wrong("no_gpm"); return SUCCESS; }
int nvmlGpmSampleAlloc(uint64_t **sample) { *sample = calloc(1, sizeof **sample); return SUCCESS; }
int nvmlGpmSampleFree(uint64_t *sample) { free(sample); return SUCCESS; }
int nvmlGpmSampleGet(void *device, uint64_t *sample) { (void)device; if (wrong("mig")) return NOT_SUPPORTED; *sample = milliseconds(); return SUCCESS; }
int nvmlGpmMetricsGet(gpm_metrics_t *asked) {
    static const struct { unsigned int id; const char *name; uint64_t pct; } known[] = {
        { 2, "NVML_SM_PCT", 60 }, { 5, "NVML_TENSOR_PCT", 40 }, { 12, "NVML_FP32_PCT", 5 }, { 10, "NVML_DRAM_PCT", 30 } };
    if (asked->version != 1 || !*asked->first || *asked->second <= *asked->first) return 2; /* invalid argument */
    for (unsigned int i = 0; i < asked->count; i++) {
        asked->metrics[i].result = NOT_SUPPORTED;
        for (unsigned int k = 0; k < 4; k++)
            if (known[k].id == asked->metrics[i].id) {
                asked->metrics[i].result = SUCCESS; asked->metrics[i].value = (double)setting(known[k].name, known[k].pct);
            }
    }
    return SUCCESS;
}
typedef struct { unsigned int pid; unsigned long long memory; unsigned int gpu_instance, compute_instance; } process_t;
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned int *count, process_t *processes) {
    unsigned int running = (unsigned)setting("NVML_PROCESSES", 0);
    (void)device;
    if (running > *count) { *count = running; return INSUFFICIENT_SIZE; }
    for (unsigned int i = 0; i < running; i++) processes[i] = (process_t){ 4000000 + i, 1ull << 30, 0, 0 };
    *count = running;
    return SUCCESS;
}
#ifndef OLD_DRIVER
int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *mask) {
    (void)device;
    if (wrong("no_clock_events")) return NOT_SUPPORTED;
    *mask = wrong("power_capped") ? 0x4 : setting("NVML_REASONS", 1); /* else idle */
    return SUCCESS;
}
#endif
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned int *mw) { (void)device; *mw = (unsigned)setting("NVML_CAP_W", 230) * 1000; return SUCCESS; }
int nvmlDeviceGetPowerManagementDefaultLimit(void *device, unsigned int *mw) { (void)device; *mw = 700000; return SUCCESS; }
int nvmlDeviceGetApplicationsClock(void *device, int type, unsigned int *mhz) {
    (void)device; (void)type;
    if (wrong("no_application_clock")) return NOT_SUPPORTED;
    *mhz = 1400;
    return SUCCESS;
}
