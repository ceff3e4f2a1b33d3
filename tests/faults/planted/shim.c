// Preloaded before libc: kills the process within, before or after a system call, or sets the wall clock back.
//
//   SHIM_KILL    within-write, before-unlink, after-rename
//   SHIM_PATH    the call is meant if the path that it writes, removes or renames to contains this
//   SHIM_COUNT   and the one that is meant is the n-th of them (1 if unset)
//   SHIM_CLOCK   while this file is there, the wall clock is a day behind
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int meant(const char *call, const char *path) {
  static int seen = 0;
  const char *kill_at = getenv("SHIM_KILL"), *part = getenv("SHIM_PATH"), *count = getenv("SHIM_COUNT");
  if (!kill_at || !part || strcmp(kill_at, call) || !strstr(path, part)) return 0;
  return ++seen == (count ? atoi(count) : 1);
}

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

ssize_t write(int descriptor, const void *data, size_t size) {
  if (getenv("SHIM_KILL")) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    if (meant("within-write", path)) {
      REAL(write)(descriptor, data, size / 2);
      die();
    }
  }
  return REAL(write)(descriptor, data, size);
}

int unlink(const char *path) {
  if (meant("before-unlink", path)) die();
  return REAL(unlink)(path);
}

int rename(const char *from, const char *to) {
  int answer = REAL(rename)(from, to);
  if (meant("after-rename", to)) die();
  return answer;
}

static time_t behind(void) {
  const char *flag = getenv("SHIM_CLOCK");
  return flag && access(flag, F_OK) == 0 ? 24 * 3600 : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int answer = REAL(clock_gettime)(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec -= behind();
  return answer;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  int answer = REAL(gettimeofday)(now, zone);
  now->tv_sec -= behind();
  return answer;
}

time_t time(time_t *result) {
  time_t now = REAL(time)(NULL) - behind();
  if (result) *result = now;
  return now;
}
