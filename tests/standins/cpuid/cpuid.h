/* Stands in for the compiler's header: CPUID answers what the test planted. */
#include <stdlib.h>

/* A planted leaf's EDX is in the environment: CPUID_80000007=100 (both hexadecimal). A processor without it answers 0. */
static int __get_cpuid(unsigned leaf, unsigned *eax, unsigned *ebx, unsigned *ecx, unsigned *edx) {
    const char *planted = getenv(leaf == 0x80000001u ? "CPUID_80000001" : "CPUID_80000007");
    *eax = *ebx = *ecx = 0;
    *edx = planted == NULL ? 0 : (unsigned)strtoul(planted, NULL, 16);
    return planted != NULL;
}
