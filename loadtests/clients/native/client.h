/* The common part of the clients in C: clock, connections, parts of an answer, line of the result. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum kind { RIGHT, CONNECT, READ, WRITE, STATUS, TIMEOUT, KINDS };
enum part { LENGTH, EXTENSION, CONTENT, AFTER_CONTENT, TRAILER };

static const char *const kinds[KINDS] = {"right", "connect", "read", "write", "status", "timeout"};
static uint64_t errors[KINDS];
static struct sockaddr_in server;
static int poller;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void *made(void *memory) {
    if (memory == NULL)
        fail("memory");
    return memory;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int new_socket(void) {
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* Whether the connection is under way; the poller tells of it when it can be written to, or has failed. */
static bool begin_connecting(int fd, void *connection) {
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = connection};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0)
        fail("epoll_ctl");
    return connect(fd, (struct sockaddr *)&server, sizeof server) == 0 || errno == EINPROGRESS;
}

static bool is_connected(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0;
}

/* What is behind a field's name, which stands between "\r\n" and ":"; NULL if there is none. */
static inline const char *field(const char *head, const char *name) {
    const char *found = strcasestr(head, name);
    return found ? found + strlen(name) : NULL;
}

/* Whether a field is there and begins so. */
static inline bool says(const char *head, const char *name, const char *word) {
    const char *value = field(head, name);
    return value && strncasecmp(value + strspn(value, " \t"), word, strlen(word)) == 0;
}

struct chunks {
    enum part part;
    size_t left, line; /* octets of the chunk still to come, or of its line that have come */
    bool over;
};

/* Reads the lines around chunks and skips the chunks (RFC 9112 section 7.1). Returns how much of the data belongs to
 * the answer. */
static inline size_t take_chunks(struct chunks *chunks, const char *data, size_t size) {
    size_t at = 0;
    while (at < size && !chunks->over) {
        if (chunks->part == CONTENT) {
            size_t there = size - at, taken = chunks->left < there ? chunks->left : there;
            chunks->left -= taken;
            at += taken;
            if (chunks->left == 0)
                chunks->part = AFTER_CONTENT;
            continue;
        }
        char octet = data[at++];
        if (octet == '\n') {
            if (chunks->part == LENGTH || chunks->part == EXTENSION)
                chunks->part = chunks->left ? CONTENT : TRAILER;
            else if (chunks->part == AFTER_CONTENT)
                chunks->part = LENGTH;
            else
                chunks->over = chunks->line == 0;
            chunks->line = 0;
        } else if (octet != '\r') {
            if (chunks->part == LENGTH && !isxdigit((unsigned char)octet))
                chunks->part = EXTENSION;
            if (chunks->part == LENGTH)
                chunks->left = chunks->left * 16 + (size_t)(octet <= '9' ? octet - '0' : (octet | 32) - 'a' + 10);
            chunks->line++;
        }
    }
    return at;
}

/* The line of the result as wrk.lua writes it, up to the errors; times in microseconds. */
static void report_load(uint64_t requests, double microseconds, uint64_t octets, double mean, double middle, double late,
                        double longest) {
    printf("loadtests {\"requests\": %lu, \"microseconds\": %.0f, \"bytes\": %lu, \"mean_us\": %.1f, \"p50_us\": %.0f, "
           "\"p99_us\": %.0f, \"max_us\": %.0f", requests, microseconds, octets, mean, middle, late, longest);
    for (enum kind kind = CONNECT; kind < KINDS; kind++)
        printf(", \"%s\": %lu", kinds[kind], errors[kind]);
}

static inline int compare(const void *left, const void *right) {
    uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;
    return (one > other) - (one < other);
}

/* The same of `count` times in nanoseconds, which are sorted. */
static inline void report_times(uint64_t *times, uint64_t count, uint64_t nanoseconds, uint64_t octets) {
    uint64_t sum = 0, last = count ? count - 1 : 0;
    for (uint64_t i = 0; i < count; i++)
        sum += times[i];
    if (count)
        qsort(times, count, sizeof *times, compare);
    double each = count ? (double)sum / (double)count : 0, middle = count ? (double)times[last / 2] : 0;
    double late = count ? (double)times[last * 99 / 100] : 0, longest = count ? (double)times[last] : 0;
    report_load(count, (double)(nanoseconds / 1000), octets, each / 1e3, middle / 1e3, late / 1e3, longest / 1e3);
}

/* An array with room for one more behind those that it has. */
static inline void *room(void *array, size_t used, size_t *size, size_t each) {
    if (used < *size)
        return array;
    *size = *size ? 2 * *size : 1 << 14;
    return made(realloc(array, *size * each));
}
