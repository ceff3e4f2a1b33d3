/* Stands in for libcuda.so.1: two GPUs of 80 GiB, in the order of their bus ids; CUDA_STAND_IN=none: no device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int none(void) { const char *m = getenv("CUDA_STAND_IN"); return m && strcmp(m, "none") == 0; }
int cuInit(unsigned int flags) { (void)flags; return none() ? 100 : 0; }
int cuDeviceGet(int *device, int ordinal) { if (ordinal > 1) return 101; *device = ordinal; return 0; }
int cuDeviceGetPCIBusId(char *text, int length, int device) {
    snprintf(text, (size_t)length, "0000:%02X:00.0", device ? 0xC1 : 0x65); return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)80 << 30; return 0; }
