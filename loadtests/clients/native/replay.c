/* A client that sends given requests, as fast as they are answered or at given times, and reports each outcome.
 *
 *     replay ADDRESS PORT CONNECTIONS WARM SECONDS RATE SEED REQUESTS COUNTS [OUTCOMES]
 *
 * The file REQUESTS has for each request a line of four numbers, its length, whether its answer has no body (to HEAD), a status
 * that is right besides 2xx and 3xx (0: none), and microseconds from the beginning, and then its octets. They are sent in their
 * order, again from the first after the last, whichever connection is free. With RATE 0 each connection sends as soon as it has
 * its answer. Otherwise so many a second are due, at random times (the gaps are exponential, by SEED), or with a RATE below 0 each
 * once at its own time; and an answer's time counts from when its request was due: what is due while all connections are busy,
 * waits here. What is due in the first WARM seconds, or without a RATE is answered in them, does not count. SECONDS later no more
 * is sent. With a RATE there is as much time again, from LEAST_PATIENCE to PATIENCE, or at recorded times LONG_PATIENCE, for what
 * was sent, unless nobody listens for NOBODY_LISTENS, and what is not answered then counts as timed out, and with its age among
 * the times; without one, what has not been answered in all the SECONDS counts as timed out.
 *
 * A server may close a connection behind an answer without saying so. A request that finds it closed before the first octet of
 * its own answer is sent once more, on a new connection, if its method is idempotent (RFC 9112 section 9.3.1); its time goes on.
 * `unsaid` counts these, `opened` the connections.
 *
 * COUNTS becomes, behind a line of how many were answered in all, the distribution: lines of microseconds and how many, three
 * digits exact. OUTCOMES gets a line for each request: when it was due and how long it took, in microseconds, 1 if it was
 * answered rightly, its number, and the status or the kind of error. The last line on standard output is the one that wrk.lua
 * writes. `requests` are those answered, rightly or not.
 */
#include "client.h"

#include <math.h>
#include <sys/timerfd.h>

enum { EVENTS = 256, RECEIVE = 65536, HEAD = 65536, EXACT = 2048, HALVES = 1024, DOUBLINGS = 40, PAUSE = 10000000 };
enum body { IN_HEAD, OF_LENGTH, TO_END, CHUNKED };
static const double LEAST_PATIENCE = 1, PATIENCE = 3, LONG_PATIENCE = 30, NOBODY_LISTENS = 1;

struct request { const char *octets; size_t size; bool headless; int status; uint64_t due; };
struct connection {
    int fd;
    bool connecting, busy;
    bool kept;              /* the last that came was the end of an answer */
    uint64_t due, again;    /* when the request was, and when to connect anew, in nanoseconds */
    const struct request *request;
    size_t sent, head_size, left;
    enum body part;
    struct chunks chunks;
    int status;
    bool last;              /* the server closes behind this answer */
    uint32_t watched;
    char *head;
};

static struct request *requests;
static size_t request_count, next_request, due_count, connection_count, waiting_first, waiting_count, waiting_room;
static struct connection *connections;
static uint64_t *waiting, counts[EXACT + HALVES * DOUBLINGS], answered, in_all, octets, most_time, begun, opened, over,
    connected, unsaid, refused_since;
static double sum_time;
static double rate;
static bool ending;
static FILE *outcomes;

/* Up to EXACT each microsecond has its place, then each doubling has HALVES. */
static void count(uint64_t nanoseconds) {
    uint64_t time = nanoseconds / 1000, place = time;
    if (time >= EXACT) {
        int doubling = 63 - __builtin_clzll(time) - 10;
        place = EXACT + (uint64_t)(doubling - 1) * HALVES + ((time >> doubling) - HALVES);
    }
    if (place >= EXACT + HALVES * DOUBLINGS)
        place = EXACT + HALVES * DOUBLINGS - 1;
    counts[place]++;
    sum_time += (double)time;
    if (time > most_time)
        most_time = time;
}

static uint64_t time_of(size_t place) {
    if (place < EXACT)
        return place;
    size_t doubling = (place - EXACT) / HALVES + 1;
    return ((uint64_t)(HALVES + (place - EXACT) % HALVES) << doubling) + ((uint64_t)1 << doubling) / 2;
}

static void read_requests(const char *name) {
    FILE *file = fopen(name, "rb");
    if (file == NULL)
        fail(name);
    size_t size;
    int headless, status;
    uint64_t due;
    while (fscanf(file, "%zu %d %d %lu", &size, &headless, &status, &due) == 4) {
        fgetc(file);
        char *text = made(malloc(size + 1));
        if (fread(text, 1, size, file) != size) {
            fprintf(stderr, "%s: cut off\n", name);
            exit(1);
        }
        requests = made(realloc(requests, (request_count + 1) * sizeof *requests));
        requests[request_count++] = (struct request){text, size, headless != 0, status, due};
    }
    fclose(file);
    if (request_count == 0) {
        fprintf(stderr, "%s: no requests\n", name);
        exit(1);
    }
}

static void watch(struct connection *connection, uint32_t events) {
    if (connection->watched == events)
        return;
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (epoll_ctl(poller, EPOLL_CTL_MOD, connection->fd, &event) < 0)
        fail("epoll_ctl");
    connection->watched = events;
}

static void leave(struct connection *connection, uint64_t pause) {
    close(connection->fd);
    connection->fd = -1;
    connection->busy = connection->connecting = connection->kept = false;
    connection->again = now() + pause;
}

static void note(uint64_t due, bool right, const struct request *request, int what) {
    if (outcomes)
        fprintf(outcomes, "%lu %lu %d %zu %d\n", (due - begun) / 1000, (now() - due) / 1000, right, (size_t)(request - requests), what);
}

static void lose(struct connection *connection, enum kind kind) {
    errors[kind]++;
    if (kind == CONNECT && refused_since == 0)
        refused_since = now();
    if (connection->busy)
        note(connection->due, false, connection->request, kind);
    leave(connection, PAUSE);
}

static void connect_anew(struct connection *connection) {
    connection->fd = new_socket();
    if (connection->fd < 0)
        fail("socket");
    connection->watched = EPOLLOUT;
    connection->connecting = true;
    if (!begin_connecting(connection->fd, connection))
        lose(connection, CONNECT);
}

static bool is_idempotent(const struct request *request) {
    static const char *const methods[] = {"GET ", "HEAD ", "OPTIONS ", "PUT ", "DELETE ", "TRACE "};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strncmp(request->octets, methods[i], strlen(methods[i])) == 0)
            return true;
    return false;
}

/* A connection with a request has ended: the request is sent again, or is lost. */
static void lose_or_repeat(struct connection *connection, enum kind kind, bool is_ended) {
    if (!is_ended || !connection->kept || !is_idempotent(connection->request)) {
        lose(connection, kind);
        return;
    }
    unsaid++;
    close(connection->fd);
    connection->kept = false;
    connect_anew(connection);
}

static void send_rest(struct connection *connection) {
    const struct request *request = connection->request;
    while (connection->sent < request->size) {
        ssize_t size = send(connection->fd, request->octets + connection->sent, request->size - connection->sent, MSG_NOSIGNAL);
        if (size < 0) {
            if (errno == EAGAIN) {
                watch(connection, EPOLLIN | EPOLLOUT);
                return;
            }
            lose_or_repeat(connection, WRITE, errno == EPIPE || errno == ECONNRESET);
            return;
        }
        connection->sent += (size_t)size;
    }
    watch(connection, EPOLLIN);
}

static void ask(struct connection *connection, uint64_t due) {
    connection->request = &requests[next_request];
    next_request = (next_request + 1) % request_count;
    connection->due = due;
    connection->busy = true;
    connection->sent = connection->head_size = 0;
    connection->part = IN_HEAD;
    send_rest(connection);
}

/* The next request for a connection that has none, if one may be sent. */
static void proceed(struct connection *connection) {
    if (rate == 0) {
        if (!ending)
            ask(connection, now());
    } else if (waiting_count) {
        uint64_t due = waiting[waiting_first];
        waiting_first = (waiting_first + 1) % waiting_room;
        waiting_count--;
        ask(connection, due);
    }
}

static void finish(struct connection *connection) {
    uint64_t time = now();
    bool right = connection->status / 100 == 2 || connection->status / 100 == 3 ||
                 (connection->request->status && connection->status == connection->request->status);
    connection->busy = false;
    connection->kept = true;
    in_all++;
    if (rate != 0 ? connection->due >= opened : time >= opened && time <= over) {
        answered++;
        count(time - connection->due);
        errors[STATUS] += !right;
        note(connection->due, right, connection->request, connection->status);
    }
    if (connection->last)
        leave(connection, 0);
    else
        proceed(connection);
}

/* Takes the head of an answer apart; false if it is none. */
static bool understand(struct connection *connection) {
    const char *head = connection->head, *length = field(head, "\r\nContent-Length:");
    if (strncmp(head, "HTTP/1.", 7) != 0 || strlen(head) < 12)
        return false;
    connection->status = atoi(head + 9);
    bool old = strncmp(head, "HTTP/1.0", 8) == 0;
    connection->last = old ? !says(head, "\r\nConnection:", "keep-alive") : says(head, "\r\nConnection:", "close");
    if (connection->status / 100 == 1) {
        connection->head_size = 0;
        return true;
    }
    connection->left = 0;
    connection->part = OF_LENGTH;
    if (connection->request->headless || connection->status == 204 || connection->status == 304)
        return true;
    if (says(head, "\r\nTransfer-Encoding:", "chunked")) {
        connection->part = CHUNKED;
        connection->chunks = (struct chunks){0};
    } else if (length)
        connection->left = strtoull(length, NULL, 10);
    else
        connection->part = TO_END;
    return true;
}

/* Takes what has come of an answer. */
static void take(struct connection *connection, const char *data, size_t size) {
    size_t at = 0;
    while (connection->part == IN_HEAD && at < size) {
        if (connection->head_size == HEAD - 1) {
            lose(connection, READ);
            return;
        }
        connection->head[connection->head_size++] = data[at++];
        connection->head[connection->head_size] = '\0';
        bool ends = connection->head_size >= 4 && memcmp(connection->head + connection->head_size - 4, "\r\n\r\n", 4) == 0;
        if (ends && !understand(connection)) {
            lose(connection, READ);
            return;
        }
    }
    size_t rest = size - at;
    if (connection->part == OF_LENGTH)
        connection->left -= rest < connection->left ? rest : connection->left;
    else if (connection->part == CHUNKED)
        take_chunks(&connection->chunks, data + at, rest);
    if ((connection->part == OF_LENGTH && connection->left == 0) || (connection->part == CHUNKED && connection->chunks.over))
        finish(connection);
}

static void handle(struct connection *connection, uint32_t events) {
    static char data[RECEIVE];
    if (connection->fd < 0)
        return;
    if (connection->connecting) {
        if (!is_connected(connection->fd)) {
            lose(connection, CONNECT);
            return;
        }
        connection->connecting = false;
        refused_since = 0;
        connected++;
        watch(connection, EPOLLIN);
        if (connection->busy) {
            connection->sent = 0;
            send_rest(connection);
        } else {
            proceed(connection);
            /* What it was opened for may have gone to one that was free before. */
            if (rate != 0 && connection->fd >= 0 && !connection->busy)
                leave(connection, 0);
        }
        return;
    }
    if (events & EPOLLOUT && connection->busy) {
        send_rest(connection);
        if (connection->fd < 0 || connection->connecting)
            return;
    }
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    ssize_t size = recv(connection->fd, data, sizeof data, 0);
    bool is_ended = size == 0 || (size < 0 && errno == ECONNRESET);
    if (size > 0) {
        octets += (uint64_t)size;
        connection->kept = false;
        if (connection->busy)
            take(connection, data, (size_t)size);
        else
            lose(connection, READ);
    } else if (size == 0 && connection->busy && connection->part == TO_END) {
        connection->last = true;
        finish(connection);
    } else if (!connection->busy && (size == 0 || (is_ended && connection->kept)))
        leave(connection, 0);
    else if (is_ended || errno != EAGAIN)
        lose_or_repeat(connection, READ, is_ended);
}

static uint64_t state;

static double uniform(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

/* When the request behind one that was due then is due. */
static uint64_t next_due(uint64_t last) {
    if (rate > 0)
        return last + (uint64_t)(-log(uniform()) / rate * 1e9);
    return due_count < request_count ? begun + 1000 * requests[due_count++].due : UINT64_MAX;
}

static void enqueue(uint64_t due) {
    if (waiting_count == waiting_room) {
        size_t room = waiting_room ? 2 * waiting_room : 1024;
        uint64_t *moved = made(malloc(room * sizeof *moved));
        for (size_t i = 0; i < waiting_count; i++)
            moved[i] = waiting[(waiting_first + i) % waiting_room];
        free(waiting);
        waiting = moved;
        waiting_room = room;
        waiting_first = 0;
    }
    waiting[(waiting_first + waiting_count++) % waiting_room] = due;
}

static size_t hand_out(uint64_t time) {
    size_t busy = 0, coming = 0;
    for (size_t i = 0; i < connection_count; i++) {
        struct connection *connection = &connections[i];
        if (connection->fd >= 0 && !connection->connecting && !connection->busy && rate != 0 && waiting_count)
            proceed(connection);
        busy += connection->busy;
        coming += connection->connecting && !connection->busy;
    }
    for (size_t i = 0; i < connection_count; i++) {
        struct connection *connection = &connections[i];
        /* At given times only when one is needed: some servers serve nobody else beside one that is idle. */
        bool needed = rate != 0 ? coming < waiting_count : !ending;
        if (connection->fd < 0 && needed && time >= connection->again) {
            connect_anew(connection);
            coming++;
        }
    }
    return busy;
}

static void give_up(uint64_t due, uint64_t time, const struct request *request) {
    errors[TIMEOUT]++;
    note(due, false, request, TIMEOUT);
    if (rate != 0)
        count(time - due);
}

static uint64_t at_share(double share) {
    uint64_t all = 0, sum = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        all += counts[i];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if ((sum += counts[i]) && (double)sum >= share * (double)all)
            return time_of(i) < most_time ? time_of(i) : most_time;
    return 0;
}

int main(int argc, char **argv) {
    server.sin_family = AF_INET;
    if (argc < 10 || argc > 11 || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1) {
        fprintf(stderr, "replay ADDRESS PORT CONNECTIONS WARM SECONDS RATE SEED REQUESTS COUNTS [OUTCOMES]\n");
        return 2;
    }
    if (argc == 11 && (outcomes = fopen(argv[10], "w")) == NULL)
        fail(argv[10]);
    server.sin_port = htons((uint16_t)atoi(argv[2]));
    connection_count = strtoul(argv[3], NULL, 10);
    double warm = atof(argv[4]), seconds = atof(argv[5]);
    rate = atof(argv[6]);
    state = strtoull(argv[7], NULL, 10) * 2654435761u + 88172645463325252u;
    read_requests(argv[8]);
    connections = made(calloc(connection_count, sizeof *connections));
    for (size_t i = 0; i < connection_count; i++)
        connections[i] = (struct connection){.fd = -1, .head = made(malloc(HEAD))};
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0)
        fail("epoll_create1");
    /* Milliseconds of epoll_wait would be seen in the times. */
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct epoll_event ticking = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (timer < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, timer, &ticking) < 0)
        fail("timerfd");
    begun = now();
    uint64_t time = begun, due = UINT64_MAX;
    opened = begun + (uint64_t)(warm * 1e9);
    over = opened + (uint64_t)(seconds * 1e9);
    uint64_t patience = rate == 0 ? 0 : (uint64_t)(fmin(fmax(seconds, LEAST_PATIENCE), PATIENCE) * 1e9);
    if (rate < 0)
        patience = (uint64_t)(LONG_PATIENCE * 1e9);
    if (rate != 0)
        due = next_due(begun);
    struct epoll_event events[EVENTS];
    for (;;) {
        ending = time >= over;
        for (; due <= time && due < over; due = next_due(due))
            enqueue(due);
        size_t busy = hand_out(time);
        bool is_gone = refused_since && time >= refused_since + (uint64_t)(NOBODY_LISTENS * 1e9);
        if (time >= over + patience || (ending && busy + (is_gone ? 0 : waiting_count) == 0))
            break;
        uint64_t until = ending ? over + patience : due < over ? due : over;
        uint64_t gap = until <= time ? 1 : until - time < PAUSE ? until - time : PAUSE;
        struct itimerspec wait = {.it_value.tv_nsec = (long)gap};
        if (timerfd_settime(timer, 0, &wait, NULL) < 0)
            fail("timerfd_settime");
        int ready = epoll_wait(poller, events, EVENTS, -1);
        if (ready < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int i = 0; i < ready; i++)
            if (events[i].data.ptr)
                handle(events[i].data.ptr, events[i].events);
        time = now();
    }
    for (size_t i = 0; i < connection_count; i++)
        if (connections[i].busy && (rate != 0) == (connections[i].due >= opened))
            give_up(connections[i].due, time, connections[i].request);
    for (size_t i = 0; i < waiting_count; i++)
        if (waiting[(waiting_first + i) % waiting_room] >= opened)
            give_up(waiting[(waiting_first + i) % waiting_room], time, &requests[(next_request + i) % request_count]);
    FILE *file = fopen(argv[9], "w");
    uint64_t all = 0;
    if (file == NULL)
        fail(argv[9]);
    fprintf(file, "%lu\n", in_all);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        all += counts[i];
        if (counts[i])
            fprintf(file, "%lu %lu\n", time_of(i), counts[i]);
    }
    if (fclose(file) != 0 || (outcomes && fclose(outcomes) != 0))
        fail(argv[9]);
    report_load(answered, seconds * 1e6, octets, all ? sum_time / (double)all : 0.0, (double)at_share(0.5),
                (double)at_share(0.99), (double)most_time);
    printf(", \"opened\": %lu, \"unsaid\": %lu}\n", connected, unsaid);
    return 0;
}
