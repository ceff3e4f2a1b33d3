"""Traces the process of the number that it is given, and sleeps: when that one is killed, it stays a zombie."""

import ctypes
import sys
import time

# From <linux/ptrace.h>; ptrace(2). It does not stop the process.
PTRACE_SEIZE = 0x4206

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
refused = libc.ptrace(PTRACE_SEIZE, int(sys.argv[1]), None, None)
print(f"refused: {ctypes.get_errno()}" if refused else "traces", flush=True)
time.sleep(600)
