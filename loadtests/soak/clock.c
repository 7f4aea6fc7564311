/* A library for LD_PRELOAD: shifts the time of day by the seconds that a file holds (SOAK_CLOCK).

   The file has one int64_t. Clocks that measure durations stay as they are. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t none;
static volatile int64_t *shift = &none;

__attribute__((constructor)) static void find_file(void) {
  const char *path = getenv("SOAK_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *found = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
  if (found != MAP_FAILED) shift = found;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += *shift;
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec exact;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *into) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME_COARSE, &exact);
  if (into) *into = exact.tv_sec;
  return exact.tv_sec;
}
