/* A load client for large responses, given numbers of requests, and traces of each request.
 * It takes little CPU time where wrk would be the limit.
 *
 *     fetch [OPTION...] PORT CONNECTIONS REQUESTS SECONDS keep|close|MILLISECONDS VISITS
 *
 * Each line of the file VISITS is a visit: targets that are asked for one after the other on one connection. Visits are
 * made in their order, again from the first after the last, CONNECTIONS at a time, until REQUESTS have been made
 * (0: any number) or SECONDS are over. `keep` makes the next visit on the same connection, `close` on another one.
 * With a number of milliseconds CONNECTIONS visits begin at once, and as many again whenever that time has passed,
 * whether or not those before are over: no more than BURSTS times CONNECTIONS at once. What should have been begun then,
 * and what is unanswered at the end, counts as timed out; of a number of REQUESTS that are unanswered at the end, too.
 *
 *     -a HOST     an IPv4 address; else 127.0.0.1
 *     -g SECONDS  a client gives up then: what is unanswered so long after the intended moment has timed out, and its
 *                 connection is closed. What should have begun more than MISSED ns ago is left out.
 *     -o          HTTP/1.0: each request on a connection of its own
 *     -p SECONDS  at the end nothing is begun any more, but what is unanswered may take so long
 *     -r OCTETS   are received at once, and copied
 *     -t FILE     gets a trace
 *     -u VISITS   with MILLISECONDS: not more at once than these; with them the run stops
 *     -w MS       to wait after an answer before the next request
 *
 * Where a connection goes on an answer must say how long it is. An answer is right if its status is 200 and it has come
 * to its end. What is behind the first 64 KiB of an answer is taken from the socket without being copied (MSG_TRUNC of
 * tcp(7)). A connection that the server says it will close, is not used again.
 *
 * The last line on standard output is the one that wrk.lua writes. Times are from the intended moment with a number of
 * MILLISECONDS, or else from the connection or the request, to the end of the answer; `answer_us` is the mean of those
 * to its first ANSWERED octets. Microseconds of the run end with the last answer if there is a time to wait for it.
 *
 * A trace is a row of FIELDS numbers of 64 bits as the machine has them (`struct header`), and one of them for each
 * request (`struct request`), in order of the intended times. These are in microseconds from the beginning; 0 is what
 * never happened. A request on a connection that was there has been connected when it was sent.
 */
#include "client.h"

#include <sys/prctl.h>

enum { EVENTS = 512, BEGUN_AT_ONCE = 64, RECEIVE = 65536, HEAD = 16384, UNKNOWN = -1, BURSTS = 6, ANSWERED = 15, FIELDS = 9,
       MISSED = 10000000 };
static const uint64_t MAGIC = 0x3165636172746c; /* "ltrace1" */

struct request {
    uint64_t intended, sent, connected, answered, ended; /* in nanoseconds of the clock, until they are written */
    uint64_t octets, status, kind, target;               /* `target` is a number in the order of VISITS, from 0 */
};

struct header {
    uint64_t magic, requests, begun, lasted, stopped, unused[FIELDS - 5]; /* nanoseconds of the clock */
};

struct visit {
    char *targets;
    uint64_t first; /* number of the first target */
};

struct connection {
    int fd;
    char *at;            /* the next target of the visit */
    uint64_t number;     /* of it */
    struct request request;
    int64_t left;        /* octets of the answer's body still to come; UNKNOWN until the connection ends */
    bool busy;           /* with a visit, of those that begin with time */
    bool open, connecting, asked, in_head;
    bool closing;        /* after this answer */
    bool chunked;
    struct chunks chunks;
    uint64_t resume;     /* when it goes on */
    struct connection *waiting; /* the one that goes on after it */
    struct connection *older, *newer; /* by their requests, of those that are unanswered */
    size_t head_size;
    char head[HEAD];
};

static uint64_t asked, done, answered, received, most, *times, to_answers, answers, period, pause_after, last_answer, give_up_after;
static uint64_t open_visits, most_unanswered, traced;
static size_t capacity, trace_capacity, receive_most;
static bool keep, old, closing_down, stopped, tracing;
static struct visit *visits;
static size_t visit_count, next_visit;
static struct request *trace;
static struct connection *waiting, **last_waiting = &waiting, *oldest, *newest;
static const char *host = "127.0.0.1";

static bool enough(void) {
    return closing_down || stopped || (most && asked >= most);
}

static void keep_record(const struct request *request) {
    if (!tracing)
        return;
    trace = room(trace, traced, &trace_capacity, sizeof *trace);
    trace[traced++] = *request;
}

static void begin_visit(struct connection *connection) {
    if (next_visit == visit_count)
        next_visit = 0;
    const struct visit *visit = &visits[next_visit++];
    connection->at = visit->targets;
    connection->number = visit->first;
}

static void begin_request(struct connection *connection, uint64_t intended) {
    asked++;
    connection->asked = true;
    connection->request = (struct request){.intended = intended, .target = connection->number++};
    connection->older = newest;
    connection->newer = NULL;
    *(newest ? &newest->newer : &oldest) = connection;
    newest = connection;
}

static void end_connection(struct connection *connection) {
    close(connection->fd);
    connection->open = false;
}

static void end_visit(struct connection *connection) {
    connection->busy = false;
    open_visits--;
}

static void pause_connection(struct connection *connection) {
    connection->resume = now() + pause_after;
    connection->waiting = NULL;
    *last_waiting = connection;
    last_waiting = &connection->waiting;
}

/* Counts what became of a request. */
static void conclude(struct connection *connection, enum kind kind, uint64_t time) {
    struct request *request = &connection->request;
    done++;
    connection->asked = false;
    *(connection->older ? &connection->older->newer : &oldest) = connection->newer;
    *(connection->newer ? &connection->newer->older : &newest) = connection->older;
    request->kind = kind;
    request->ended = time;
    if (kind == RIGHT) {
        times = room(times, answered, &capacity, sizeof *times);
        times[answered++] = time - request->intended;
        last_answer = time;
    } else {
        errors[kind]++;
    }
    keep_record(request);
}

/* What is left of a visit is not asked for after a request that failed. */
static void lose(struct connection *connection, enum kind kind) {
    conclude(connection, kind, now());
    if (connection->open)
        end_connection(connection);
    connection->at = "";
    if (period)
        end_visit(connection);
    else
        pause_connection(connection);
}

static void connect_anew(struct connection *connection, uint64_t intended) {
    begin_request(connection, intended);
    connection->request.sent = now();
    if (!intended)
        connection->request.intended = connection->request.sent;
    connection->fd = new_socket();
    connection->open = connection->connecting = connection->fd >= 0;
    if (!connection->open || !begin_connecting(connection->fd, connection))
        lose(connection, CONNECT);
}

static void send_request(struct connection *connection) {
    char text[2048];
    size_t length = strcspn(connection->at, " ");
    bool last = connection->at[length] == '\0';
    connection->closing = old || (last && !keep);
    int size = snprintf(text, sizeof text, "GET %.*s HTTP/1.%d\r\nHost: %s\r\n%s\r\n", (int)length, connection->at,
                        !old, host, connection->closing ? "Connection: close\r\n" : "");
    connection->at += length + !last;
    connection->in_head = true;
    connection->head_size = 0;
    if (size >= (int)sizeof text || send(connection->fd, text, (size_t)size, MSG_NOSIGNAL) != size)
        lose(connection, WRITE);
}

static void ask(struct connection *connection) {
    begin_request(connection, now());
    connection->request.sent = connection->request.connected = connection->request.intended;
    send_request(connection);
}

/* The next request, if there is to be one now. */
static void go_on(struct connection *connection) {
    bool in_visit = *connection->at;
    if (enough() || (period && !in_visit)) {
        if (connection->open)
            end_connection(connection);
        if (period)
            end_visit(connection);
        return;
    }
    if (!in_visit)
        begin_visit(connection);
    if (connection->open && (connection->closing || (!in_visit && !keep)))
        end_connection(connection);
    if (connection->open)
        ask(connection);
    else
        connect_anew(connection, 0);
}

static void finish(struct connection *connection) {
    conclude(connection, RIGHT, now());
    if (connection->closing)
        end_connection(connection);
    if (pause_after)
        pause_connection(connection);
    else
        go_on(connection);
}

/* Takes the head out of what has come. Returns how much of it was head, or -1 if the connection was given up. */
static ssize_t take_head(struct connection *connection, const char *data, size_t size) {
    size_t before = connection->head_size;
    size_t free_octets = HEAD - 1 - before, taken = size < free_octets ? size : free_octets;
    memcpy(connection->head + before, data, taken);
    connection->head[before + taken] = '\0';
    char *head = connection->head, *end = strstr(head, "\r\n\r\n");
    if (end == NULL) {
        connection->head_size = before + taken;
        if (connection->head_size == HEAD - 1) {
            lose(connection, READ);
            return -1;
        }
        return (ssize_t)taken;
    }
    end[2] = '\0';
    if (strncmp(head, "HTTP/1.", 7) == 0 && head[7] && head[8] == ' ')
        connection->request.status = strtoul(head + 9, NULL, 10);
    if (connection->request.status != 200) {
        lose(connection, STATUS);
        return -1;
    }
    bool older = head[7] == '0';
    const char *length = field(head, "\r\nContent-Length:");
    connection->closing |= older ? !says(head, "\r\nConnection:", "keep-alive") : says(head, "\r\nConnection:", "close");
    connection->chunked = says(head, "\r\nTransfer-Encoding:", "chunked");
    connection->left = length && !connection->chunked ? strtoll(length, NULL, 10) : UNKNOWN;
    connection->chunks = (struct chunks){0};
    connection->in_head = false;
    if (connection->left == UNKNOWN && !connection->chunked && !connection->closing) {
        lose(connection, READ);
        return -1;
    }
    return end + 4 - head - (ssize_t)before;
}

static void take(struct connection *connection) {
    static char buffer[RECEIVE];
    bool skipping = !receive_most && !connection->in_head && connection->left > 0;
    size_t at_once = receive_most ? receive_most : sizeof buffer;
    ssize_t size = skipping ? recv(connection->fd, NULL, (size_t)connection->left, MSG_TRUNC)
                            : recv(connection->fd, buffer, at_once, 0);
    if (size < 0 && errno == EAGAIN)
        return;
    if (!connection->asked) { /* between two requests: the next is made on another connection */
        end_connection(connection);
        return;
    }
    if (size <= 0) {
        if (size == 0 && !connection->in_head && connection->left == UNKNOWN && !connection->chunked)
            finish(connection);
        else
            lose(connection, READ);
        return;
    }
    received += (uint64_t)size;
    connection->request.octets += (uint64_t)size;
    if (!connection->request.answered && connection->request.octets >= ANSWERED) {
        connection->request.answered = now();
        to_answers += connection->request.answered - connection->request.intended;
        answers++;
    }
    ssize_t taken = 0;
    if (connection->in_head) {
        taken = take_head(connection, buffer, (size_t)size);
        if (taken < 0 || connection->in_head)
            return;
    }
    if (connection->chunked) {
        taken += (ssize_t)take_chunks(&connection->chunks, buffer + taken, (size_t)(size - taken));
        connection->left = connection->chunks.over ? 0 : UNKNOWN;
    } else if (connection->left != UNKNOWN) {
        ssize_t content = connection->left < size - taken ? connection->left : size - taken;
        connection->left -= content;
        taken += content;
    }
    if (connection->left != 0)
        return;
    if (taken < size)
        lose(connection, READ); /* more than was asked for */
    else
        finish(connection);
}

static void proceed(struct connection *connection) {
    if (!connection->connecting) {
        take(connection);
        return;
    }
    if (!is_connected(connection->fd)) {
        lose(connection, CONNECT);
        return;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    connection->connecting = false;
    connection->request.connected = now();
    epoll_ctl(poller, EPOLL_CTL_MOD, connection->fd, &event);
    send_request(connection);
}

/* Those whose clients have waited for long enough. */
static void give_up(uint64_t time) {
    while (oldest && oldest->request.intended + give_up_after <= time)
        lose(oldest, TIMEOUT);
}

/* Those whose pause is over. Their order is that in which they began it. */
static void wake(uint64_t time) {
    while (waiting && waiting->resume <= time) {
        struct connection *connection = waiting;
        waiting = connection->waiting;
        if (waiting == NULL)
            last_waiting = &waiting;
        go_on(connection);
    }
}

/* Lines become strings. */
static void read_visits(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        fail(path);
    size_t size = (size_t)ftell(file), room_for = 0;
    rewind(file);
    char *text = made(malloc(size + 1));
    if (size == 0 || fread(text, 1, size, file) != size)
        fail(path);
    fclose(file);
    text[size] = '\0';
    uint64_t number = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        visits = room(visits, visit_count, &room_for, sizeof *visits);
        visits[visit_count++] = (struct visit){line, number++};
        for (; *line; line++)
            number += *line == ' ';
    }
    if (visit_count == 0) {
        fprintf(stderr, "%s: no visit\n", path);
        exit(1);
    }
}

static int compare_requests(const void *left, const void *right) {
    const struct request *one = left, *other = right;
    int order = compare(&one->intended, &other->intended);
    return order ? order : compare(&one->sent, &other->sent);
}

static void write_trace(const char *path, uint64_t begun, uint64_t over) {
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        fail(path);
    struct header header = {MAGIC, traced, begun, over - begun, stopped, {0}};
    fwrite(&header, sizeof header, 1, file);
    if (traced)
        qsort(trace, traced, sizeof *trace, compare_requests);
    for (uint64_t i = 0; i < traced; i++) {
        struct request *request = &trace[i];
        uint64_t *moments[] = {&request->intended, &request->sent, &request->connected, &request->answered,
                               &request->ended};
        for (size_t j = 0; j < sizeof moments / sizeof *moments; j++)
            *moments[j] = *moments[j] ? (*moments[j] - begun) / 1000 : 0;
    }
    if (traced)
        fwrite(trace, sizeof *trace, traced, file);
    if (fclose(file) != 0)
        fail(path);
}

static void report(uint64_t nanoseconds) {
    double first = answers ? (double)to_answers / (double)answers : 0;
    report_times(times, answered, nanoseconds, received);
    printf(", \"answer_us\": %.1f}\n", first / 1e3);
}

/* Begins so many visits at once, as far as there is room for them. */
static void begin_visits(struct connection *connections, size_t places, size_t count, uint64_t intended) {
    static size_t place;
    static struct connection nobody;
    for (; count && !enough(); count--) {
        if (open_visits == places) {
            begin_visit(&nobody);
            begin_request(&nobody, intended);
            conclude(&nobody, TIMEOUT, 0);
            continue;
        }
        while (connections[place].busy)
            place = (place + 1) % places;
        struct connection *connection = &connections[place];
        place = (place + 1) % places;
        if (period) {
            connection->busy = true;
            open_visits++;
        }
        begin_visit(connection);
        connect_anew(connection, intended);
        if (period && most_unanswered && open_visits >= most_unanswered)
            stopped = true;
    }
}

static int wait_for_events(struct epoll_event *events, uint64_t nanoseconds) {
    struct timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    int ready = epoll_pwait2(poller, events, EVENTS, &time, NULL);
    if (ready < 0 && errno == ENOSYS)
        ready = epoll_wait(poller, events, EVENTS, (int)(nanoseconds / 1000000));
    if (ready < 0 && errno != EINTR)
        fail("epoll_wait");
    return ready;
}

static uint64_t nanoseconds_of(const char *text, double unit) {
    return (uint64_t)(strtod(text, NULL) * unit);
}

int main(int argc, char **argv) {
    const char *trace_path = NULL;
    uint64_t patience = 0;
    for (int option; (option = getopt(argc, argv, "a:g:op:r:t:u:w:")) != -1;) {
        switch (option) {
        case 'a': host = optarg; break;
        case 'g': give_up_after = nanoseconds_of(optarg, 1e9); break;
        case 'o': old = true; break;
        case 'p': patience = nanoseconds_of(optarg, 1e9); break;
        case 'r': receive_most = strtoul(optarg, NULL, 10); break;
        case 't': trace_path = optarg; break;
        case 'u': most_unanswered = strtoull(optarg, NULL, 10); break;
        case 'w': pause_after = nanoseconds_of(optarg, 1e6); break;
        default: return 2;
        }
    }
    argv += optind;
    server = (struct sockaddr_in){.sin_family = AF_INET};
    if (argc - optind != 6 || receive_most > RECEIVE || inet_pton(AF_INET, host, &server.sin_addr) != 1) {
        fprintf(stderr, "usage: fetch [OPTION...] PORT CONNECTIONS REQUESTS SECONDS keep|close|MILLISECONDS VISITS\n");
        return 2;
    }
    server.sin_port = htons((unsigned short)atoi(argv[0]));
    size_t count = strtoul(argv[1], NULL, 10);
    most = strtoull(argv[2], NULL, 10);
    double seconds = strtod(argv[3], NULL);
    keep = !old && strcmp(argv[4], "keep") == 0;
    period = nanoseconds_of(argv[4], 1e6);
    read_visits(argv[5]);
    tracing = trace_path != NULL;

    size_t places = !period ? count : most_unanswered ? most_unanswered : BURSTS * count;
    struct connection *connections = made(calloc(places, sizeof *connections));
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0)
        fail("epoll_create1");
    prctl(PR_SET_TIMERSLACK, 1);
    uint64_t begun = now(), end = begun + (uint64_t)(seconds * 1e9), due = period ? begun + period : UINT64_MAX, time;
    begin_visits(connections, places, count, period ? begun : 0);
    struct epoll_event events[EVENTS];
    while (!stopped && !(most && done >= most)) {
        time = now();
        if (give_up_after && period && due + MISSED < time)
            due += (time - due - MISSED) / period * period;
        /* Also those it is late for; where it may not keep up, with looks at what has come in between. */
        for (int at_once = 0; due <= time && due < end && !stopped; due += period) {
            if (give_up_after && at_once++ == BEGUN_AT_ONCE)
                break;
            begin_visits(connections, places, count, due);
        }
        if (give_up_after)
            give_up(time);
        closing_down = time >= end;
        if (time >= end + patience || (closing_down && done >= asked))
            break;
        wake(time);
        uint64_t until = closing_down ? end + patience : end;
        if (!enough() && due < until)
            until = due;
        if (waiting && waiting->resume < until)
            until = waiting->resume;
        if (give_up_after && oldest && oldest->request.intended + give_up_after < until)
            until = oldest->request.intended + give_up_after;
        if (stopped)
            break;
        time = now();
        int ready = wait_for_events(events, until > time ? until - time : 0);
        for (int i = 0; i < ready; i++)
            if (((struct connection *)events[i].data.ptr)->open)
                proceed(events[i].data.ptr);
    }
    uint64_t over = now();
    for (size_t i = 0; (period || most || patience) && i < places; i++)
        if (connections[i].asked)
            conclude(&connections[i], TIMEOUT, over);
    if (tracing)
        write_trace(trace_path, begun, over);
    report(patience && last_answer ? last_answer - begun : over - begun);
}
