/* A WebSocket client (RFC 6455) that has messages echoed, and takes little CPU time for it.
 *
 *     websocket PORT CONNECTIONS SECONDS OCTETS TARGET
 *
 * It opens CONNECTIONS, and when the handshakes of all are over, each sends a text message of so many OCTETS, and another
 * one whenever the last has come back, until SECONDS are over. An echo is right if it is one unmasked frame with the same
 * text. A connection that gets something else is closed, and counts as an error of `read`; one whose handshake is not
 * answered by 101 counts as an error of `status`, and nothing is measured then.
 *
 * The last line on standard output is the one that wrk.lua writes; its requests are messages. Times are from a message to
 * its echo.
 */
#include "client.h"

enum { EVENTS = 512, RECEIVE = 65536, HEADER = 10, MASK = 4 };
static const double PATIENCE = 10; /* seconds for all handshakes */
static const unsigned char mask[MASK] = {0x17, 0x2b, 0x93, 0xe5};

struct connection {
    int fd;
    bool open, connecting, upgraded;
    uint64_t sent;    /* when the last message was */
    size_t come, out; /* octets of the answer that have come, of the message that have gone */
    char head[4096];  /* of the answer to the handshake */
};

static struct connection *connections;
static size_t count, upgraded, echoed, capacity, frame_size, echo_size;
static uint64_t *times, received, end = UINT64_MAX;
static char *frame, *echo, *input;
static const char *target;

/* The beginning of a frame of text; returns its length. */
static size_t begin_frame(char *at, size_t size, bool masked) {
    unsigned char *to = (unsigned char *)at, bit = masked ? 0x80 : 0;
    size_t octets = size < 126 ? 0 : size < 65536 ? 2 : 8, used = 0;
    to[used++] = 0x81;
    to[used++] = (unsigned char)(bit | (octets == 0 ? size : octets == 2 ? 126 : 127));
    for (size_t i = octets; i-- > 0;)
        to[used++] = (unsigned char)(size >> (8 * i));
    for (size_t i = 0; masked && i < MASK; i++)
        to[used++] = mask[i];
    return used;
}

static void make_message(size_t size) {
    frame = made(malloc(HEADER + MASK + size));
    echo = made(malloc(HEADER + size));
    input = made(malloc(RECEIVE));
    frame_size = begin_frame(frame, size, true);
    echo_size = begin_frame(echo, size, false);
    for (size_t i = 0; i < size; i++) {
        char letter = (char)('a' + i % 26);
        echo[echo_size++] = letter;
        frame[frame_size++] = (char)(letter ^ (char)mask[i % MASK]);
    }
}

static void lose(struct connection *connection, enum kind kind) {
    errors[kind]++;
    close(connection->fd);
    connection->open = false;
}

static void watch(struct connection *connection, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = connection};
    epoll_ctl(poller, EPOLL_CTL_MOD, connection->fd, &event);
}

/* Sends what the socket takes of the message; the rest when there is room. */
static void send_message(struct connection *connection) {
    if (connection->out == 0)
        connection->sent = now();
    bool waited = connection->out > 0;
    ssize_t sent = send(connection->fd, frame + connection->out, frame_size - connection->out, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) {
        lose(connection, WRITE);
        return;
    }
    connection->out += sent > 0 ? (size_t)sent : 0;
    if (connection->out < frame_size)
        watch(connection, EPOLLIN | EPOLLOUT);
    else if (waited)
        watch(connection, EPOLLIN);
}

static void begin_handshake(struct connection *connection) {
    char text[1024];
    if (!is_connected(connection->fd)) {
        lose(connection, CONNECT);
        return;
    }
    connection->connecting = false;
    watch(connection, EPOLLIN);
    int size = snprintf(text, sizeof text,
                        "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", target);
    if (send(connection->fd, text, (size_t)size, MSG_NOSIGNAL) != size)
        lose(connection, WRITE);
}

static void take_handshake(struct connection *connection) {
    size_t most = sizeof connection->head - 1 - connection->come;
    ssize_t size = recv(connection->fd, connection->head + connection->come, most, 0);
    if (size <= 0) {
        if (size == 0 || errno != EAGAIN)
            lose(connection, READ);
        return;
    }
    connection->come += (size_t)size;
    connection->head[connection->come] = '\0';
    char *over = strstr(connection->head, "\r\n\r\n");
    if (over == NULL && (size_t)size < most)
        return;
    if (over == NULL || over[4] || strncmp(connection->head, "HTTP/1.1 101", 12) != 0) {
        fprintf(stderr, "%.*s\n", (int)strcspn(connection->head, "\r\n"), connection->head);
        lose(connection, STATUS);
        return;
    }
    connection->upgraded = true;
    connection->come = 0;
    upgraded++;
}

static void take_echo(struct connection *connection) {
    ssize_t size = recv(connection->fd, input, RECEIVE, 0);
    if (size < 0 && errno == EAGAIN)
        return;
    if (size <= 0 || connection->come + (size_t)size > echo_size ||
        memcmp(input, echo + connection->come, (size_t)size) != 0) {
        lose(connection, READ);
        return;
    }
    connection->come += (size_t)size;
    received += (uint64_t)size;
    if (connection->come < echo_size)
        return;
    times = room(times, echoed, &capacity, sizeof *times);
    uint64_t time = now();
    times[echoed++] = time - connection->sent;
    connection->come = connection->out = 0;
    if (time < end)
        send_message(connection);
}

static void proceed(struct connection *connection, uint32_t events) {
    if (connection->connecting)
        begin_handshake(connection);
    else if (!connection->upgraded)
        take_handshake(connection);
    else if (events & EPOLLOUT)
        send_message(connection);
    else
        take_echo(connection);
}

static size_t lost(void) {
    size_t sum = 0;
    for (enum kind kind = CONNECT; kind < KINDS; kind++)
        sum += errors[kind];
    return sum;
}

static void wait_for_events(uint64_t until) {
    struct epoll_event events[EVENTS];
    uint64_t time = now();
    int ready = epoll_wait(poller, events, EVENTS, time < until ? (int)((until - time) / 1000000) + 1 : 0);
    if (ready < 0 && errno != EINTR)
        fail("epoll_wait");
    for (int i = 0; i < ready; i++)
        if (((struct connection *)events[i].data.ptr)->open)
            proceed(events[i].data.ptr, events[i].events);
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: websocket PORT CONNECTIONS SECONDS OCTETS TARGET\n");
        return 2;
    }
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    count = strtoul(argv[2], NULL, 10);
    double seconds = strtod(argv[3], NULL);
    make_message(strtoul(argv[4], NULL, 10));
    target = argv[5];
    connections = made(calloc(count, sizeof *connections));
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0)
        fail("epoll_create1");
    for (size_t i = 0; i < count; i++) {
        connections[i].fd = new_socket();
        connections[i].open = connections[i].connecting = connections[i].fd >= 0;
        if (!connections[i].open || !begin_connecting(connections[i].fd, &connections[i]))
            lose(&connections[i], CONNECT);
    }
    uint64_t begun = now(), until = begun + (uint64_t)(PATIENCE * 1e9);
    while (upgraded + lost() < count && now() < until)
        wait_for_events(until);
    errors[TIMEOUT] += count - upgraded - lost();
    begun = now();
    if (lost() == 0) {
        end = begun + (uint64_t)(seconds * 1e9);
        for (size_t i = 0; i < count; i++)
            send_message(&connections[i]);
        while (now() < end && lost() < count)
            wait_for_events(end);
    }
    report_times(times, echoed, now() - begun, received);
    printf("}\n");
}
