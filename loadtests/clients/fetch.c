/* A client that costs next to nothing, for answers so large that wrk would be the limit, and for a number of requests.
 *
 *     fetch PORT CONNECTIONS REQUESTS SECONDS keep|close|MILLISECONDS VISITS
 *
 * Each line of the file VISITS is a visit: targets that are asked for one after the other on one connection. Visits are
 * made in their order, again from the first after the last, CONNECTIONS at a time, until REQUESTS have been answered
 * (0: any number) or SECONDS are over. `keep` makes the next visit on the same connection, `close` on another one.
 * With a number of milliseconds CONNECTIONS visits begin at once, and as many again whenever that time has passed,
 * whether or not those before are over: no more than BURSTS times CONNECTIONS at once. What should have been begun then,
 * and what is unanswered at the end, counts as timed out.
 *
 * Where a connection goes on an answer must say how long it is. An answer is right if its status is 200 and it has come
 * to its end. What is behind the first 64 KiB of an answer is taken from the socket without being copied (MSG_TRUNC of
 * tcp(7)).
 *
 * The last line on standard output is the one that wrk.lua writes. Times are from the connection, or else from the
 * request, to the end of the answer; `answer_us` is the mean of those to its first ANSWERED octets.
 */
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

enum { EVENTS = 512, RECEIVE = 65536, HEAD = 16384, UNKNOWN = -1, BURSTS = 6, ANSWERED = 15 };
enum part { LENGTH, EXTENSION, CONTENT, AFTER_CONTENT, TRAILER };

struct connection {
    int fd;
    char *at;            /* the next target of the visit */
    uint64_t begun;      /* when the current request was, in nanoseconds */
    int64_t left;        /* octets of the answer's body still to come; UNKNOWN until the connection ends */
    size_t came;         /* octets of the answer that have come */
    bool open, connecting, in_head;
    bool chunked;
    enum part part;      /* of a chunked answer */
    size_t chunk, line;  /* octets of the chunk still to come, or of its line that have come */
    size_t head_size;
    char head[HEAD];
};

static struct { uint64_t connect, read, write, status, timeout; } errors;
static uint64_t asked, answered, received, most, *times, to_answers, answers, period;
static size_t capacity;
static bool keep;
static char *visits, *visits_end, *next_visit;
static struct sockaddr_in server;
static int poller;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void begin_visit(struct connection *connection) {
    if (next_visit == visits_end)
        next_visit = visits;
    connection->at = next_visit;
    next_visit += strlen(next_visit) + 1;
}

static void connect_anew(struct connection *connection) {
    int on = 1;
    connection->begun = now();
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connection->fd < 0)
        fail("socket");
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection->open = connection->connecting = true;
    if (connect(connection->fd, (struct sockaddr *)&server, sizeof server) < 0 && errno != EINPROGRESS)
        fail("connect");
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = connection};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, connection->fd, &event) < 0)
        fail("epoll_ctl");
}

static bool enough(void) {
    return most && asked >= most;
}

static void end_visit(struct connection *connection) {
    close(connection->fd);
    connection->open = false;
}

/* Another connection for another visit, if there is to be one now. */
static void renew(struct connection *connection) {
    end_visit(connection);
    if (!enough() && !period) {
        begin_visit(connection);
        connect_anew(connection);
    }
}

static void lose(struct connection *connection, uint64_t *counter) {
    ++*counter;
    renew(connection);
}

static void lose_request(struct connection *connection, uint64_t *counter) {
    asked--;
    lose(connection, counter);
}

static void ask(struct connection *connection) {
    char request[2048];
    if (enough()) {
        end_visit(connection);
        return;
    }
    asked++;
    size_t length = strcspn(connection->at, " ");
    bool last = connection->at[length] == '\0';
    int size = snprintf(request, sizeof request, "GET %.*s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", (int)length,
                        connection->at, last && !keep ? "Connection: close\r\n" : "");
    connection->at += length + !last;
    connection->in_head = true;
    connection->head_size = connection->came = 0;
    if (size >= (int)sizeof request || send(connection->fd, request, (size_t)size, MSG_NOSIGNAL) != size)
        lose_request(connection, &errors.write);
}

static void finish(struct connection *connection) {
    uint64_t time = now();
    if (answered == capacity) {
        capacity = capacity ? 2 * capacity : 1 << 16;
        times = realloc(times, capacity * sizeof *times);
        if (times == NULL)
            fail("realloc");
    }
    times[answered++] = time - connection->begun;
    if (*connection->at) {
        connection->begun = time;
        ask(connection);
    } else if (keep) {
        begin_visit(connection);
        connection->begun = time;
        ask(connection);
    } else {
        renew(connection);
    }
}

static const char *field(const char *head, const char *name) {
    const char *found = strcasestr(head, name);
    return found ? found + strlen(name) : NULL;
}

/* Reads the lines around chunks and skips the chunks (RFC 9112 section 7.1). Returns how much of the data belongs to
 * the answer; at its end nothing is left. */
static size_t take_chunks(struct connection *connection, const char *data, size_t size) {
    size_t at = 0;
    while (at < size && connection->left) {
        if (connection->part == CONTENT) {
            size_t there = size - at, taken = connection->chunk < there ? connection->chunk : there;
            connection->chunk -= taken;
            at += taken;
            if (connection->chunk == 0)
                connection->part = AFTER_CONTENT;
            continue;
        }
        char octet = data[at++];
        if (octet == '\n') {
            if (connection->part == LENGTH || connection->part == EXTENSION)
                connection->part = connection->chunk ? CONTENT : TRAILER;
            else if (connection->part == AFTER_CONTENT)
                connection->part = LENGTH;
            else if (connection->line == 0)
                connection->left = 0;
            connection->line = 0;
        } else if (octet != '\r') {
            if (connection->part == LENGTH && !isxdigit((unsigned char)octet))
                connection->part = EXTENSION;
            if (connection->part == LENGTH)
                connection->chunk = connection->chunk * 16 + (size_t)(octet <= '9' ? octet - '0' : (octet | 32) - 'a' + 10);
            connection->line++;
        }
    }
    return at;
}

/* Takes the head out of what has come. Returns how much of it was head, or -1 if the connection was given up. */
static ssize_t take_head(struct connection *connection, const char *data, size_t size) {
    size_t before = connection->head_size;
    size_t room = HEAD - 1 - before, taken = size < room ? size : room;
    memcpy(connection->head + before, data, taken);
    connection->head[before + taken] = '\0';
    char *end = strstr(connection->head, "\r\n\r\n");
    if (end == NULL) {
        connection->head_size = before + taken;
        if (connection->head_size == HEAD - 1) {
            lose_request(connection, &errors.read);
            return -1;
        }
        return (ssize_t)taken;
    }
    end[2] = '\0';
    if (strncmp(connection->head, "HTTP/1.1 200", 12) != 0) {
        lose_request(connection, &errors.status);
        return -1;
    }
    const char *length = field(connection->head, "\r\nContent-Length:");
    const char *coding = field(connection->head, "\r\nTransfer-Encoding:");
    connection->chunked = coding && strncasecmp(coding + strspn(coding, " "), "chunked", 7) == 0;
    connection->left = length && !connection->chunked ? strtoll(length, NULL, 10) : UNKNOWN;
    connection->part = LENGTH;
    connection->chunk = connection->line = 0;
    connection->in_head = false;
    if (connection->left == UNKNOWN && !connection->chunked && (keep || *connection->at)) {
        lose_request(connection, &errors.read);
        return -1;
    }
    return end + 4 - connection->head - (ssize_t)before;
}

static void take(struct connection *connection) {
    static char buffer[RECEIVE];
    bool skipping = !connection->in_head && connection->left > 0;
    ssize_t size = skipping ? recv(connection->fd, NULL, (size_t)connection->left, MSG_TRUNC)
                            : recv(connection->fd, buffer, sizeof buffer, 0);
    if (size < 0 && errno == EAGAIN)
        return;
    if (size <= 0) {
        if (size == 0 && !connection->in_head && connection->left == UNKNOWN && !connection->chunked)
            finish(connection);
        else
            lose_request(connection, &errors.read);
        return;
    }
    received += (uint64_t)size;
    if (connection->came < ANSWERED && connection->came + (size_t)size >= ANSWERED) {
        to_answers += now() - connection->begun;
        answers++;
    }
    connection->came += (size_t)size;
    ssize_t taken = 0;
    if (connection->in_head) {
        taken = take_head(connection, buffer, (size_t)size);
        if (taken < 0 || connection->in_head)
            return;
    }
    if (connection->chunked) {
        taken += (ssize_t)take_chunks(connection, buffer + taken, (size_t)(size - taken));
    } else if (connection->left != UNKNOWN) {
        ssize_t content = connection->left < size - taken ? connection->left : size - taken;
        connection->left -= content;
        taken += content;
    }
    if (connection->left != 0)
        return;
    if (taken < size)
        lose_request(connection, &errors.read); /* more than was asked for */
    else
        finish(connection);
}

static void proceed(struct connection *connection) {
    if (!connection->connecting) {
        take(connection);
        return;
    }
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) {
        lose(connection, &errors.connect);
        return;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    connection->connecting = false;
    epoll_ctl(poller, EPOLL_CTL_MOD, connection->fd, &event);
    ask(connection);
}

/* Lines become strings: of the visits, each followed by the next. */
static void read_visits(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        fail(path);
    size_t size = (size_t)ftell(file);
    rewind(file);
    visits = malloc(size + 1);
    if (visits == NULL || size == 0 || fread(visits, 1, size, file) != size)
        fail(path);
    fclose(file);
    if (visits[size - 1] != '\n')
        visits[size++] = '\n';
    for (size_t i = 0; i < size; i++)
        if (visits[i] == '\n')
            visits[i] = '\0';
    visits_end = visits + size;
    next_visit = visits;
}

static int compare(const void *left, const void *right) {
    uint64_t one = *(const uint64_t *)left, other = *(const uint64_t *)right;
    return (one > other) - (one < other);
}

static void report(uint64_t nanoseconds) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < answered; i++)
        sum += times[i];
    if (answered)
        qsort(times, answered, sizeof *times, compare);
    uint64_t last = answered ? answered - 1 : 0;
    double each = answered ? (double)sum / (double)answered : 0;
    double middle = answered ? (double)times[last / 2] : 0, late = answered ? (double)times[last * 99 / 100] : 0;
    double longest = answered ? (double)times[last] : 0, first = answers ? (double)to_answers / (double)answers : 0;
    printf("loadtests {\"requests\": %lu, \"microseconds\": %lu, \"bytes\": %lu, \"mean_us\": %.1f, \"p50_us\": %.0f, "
           "\"p99_us\": %.0f, \"max_us\": %.0f, \"connect\": %lu, \"read\": %lu, \"write\": %lu, \"status\": %lu, "
           "\"timeout\": %lu, \"answer_us\": %.1f}\n",
           answered, nanoseconds / 1000, received, each / 1e3, middle / 1e3, late / 1e3, longest / 1e3, errors.connect,
           errors.read, errors.write, errors.status, errors.timeout, first / 1e3);
}

/* Begins so many visits at once, as far as there is room for them. */
static void begin_visits(struct connection *connections, size_t room, size_t count) {
    for (size_t i = 0; i < room && count && !enough(); i++)
        if (!connections[i].open) {
            begin_visit(&connections[i]);
            connect_anew(&connections[i]);
            count--;
        }
    if (!enough())
        errors.timeout += count;
}

int main(int argc, char **argv) {
    if (argc != 7) {
        fprintf(stderr, "usage: fetch PORT CONNECTIONS REQUESTS SECONDS keep|close|MILLISECONDS VISITS\n");
        return 2;
    }
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    size_t count = strtoul(argv[2], NULL, 10);
    most = strtoull(argv[3], NULL, 10);
    double seconds = strtod(argv[4], NULL);
    keep = strcmp(argv[5], "keep") == 0;
    period = strtoull(argv[5], NULL, 10) * 1000000;
    read_visits(argv[6]);

    size_t room = period ? BURSTS * count : count;
    struct connection *connections = calloc(room, sizeof *connections);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (connections == NULL || poller < 0)
        fail("epoll");
    uint64_t begun = now(), end = begun + (uint64_t)(seconds * 1e9), due = period ? begun + period : end, time;
    begin_visits(connections, room, count);
    struct epoll_event events[EVENTS];
    while ((time = now()) < end && !(most && answered >= most)) {
        if (time >= due) {
            begin_visits(connections, room, count);
            due += period;
        }
        uint64_t until = due < end ? due : end;
        int ready = epoll_wait(poller, events, EVENTS, until > time ? (int)((until - time) / 1000000) + 1 : 0);
        if (ready < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int i = 0; i < ready; i++)
            proceed(events[i].data.ptr);
    }
    uint64_t over = now();
    for (size_t i = 0; period && i < room; i++)
        errors.timeout += connections[i].open;
    report(over - begun);
}
