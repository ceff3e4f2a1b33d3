/* Stands in for libcuda.so.1: two GPUs of 80 GiB, in the order of their bus ids, as nvml.c has them.
   CUDA_VISIBLE_DEVICES      as the driver reads it: places, or GPU-stand-in-PLACE; what is neither ends the list
   CUDA_STAND_IN=none        no device
   CUDA_STAND_IN_LOG (none)  a file that gets a line from each process that has opened a device */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BOARDS = 2 };
static int visible[BOARDS], count;

static void look(void) {
    const char *mode = getenv("CUDA_STAND_IN"), *given = getenv("CUDA_VISIBLE_DEVICES");
    char entries[256];
    count = 0;
    if (mode && strcmp(mode, "none") == 0) return;
    snprintf(entries, sizeof entries, "%s", given ? given : "0,1");
    for (char *entry = strtok(entries, ","); entry && count < BOARDS; entry = strtok(NULL, ",")) {
        const char *uuid = "GPU-stand-in-";
        char *end, *place = strncmp(entry, uuid, strlen(uuid)) ? entry : entry + strlen(uuid);
        long board = strtol(place, &end, 10);
        if (end == place || *end || board < 0 || board >= BOARDS) return;
        visible[count++] = (int)board;
    }
}

int cuInit(unsigned int flags) {
    const char *log = getenv("CUDA_STAND_IN_LOG");
    (void)flags;
    look();
    if (!count) return 100;
    if (log) {
        FILE *file = fopen(log, "a");
        if (file) { fprintf(file, "%d saw %d\n", (int)getpid(), count); fclose(file); }
    }
    return 0;
}
int cuDeviceGet(int *device, int ordinal) { if (ordinal >= count) return 101; *device = visible[ordinal]; return 0; }
int cuDeviceGetPCIBusId(char *text, int length, int device) {
    snprintf(text, (size_t)length, "0000:%02X:00.0", 0x65 + device); return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = (size_t)80 << 30; return 0; }
