/* The baseline of all comparisons: a bare epoll loop that answers every request with the same bytes.
 *
 *     floor PORT BODY_FILE CONTENT_TYPE REQUEST_BODY_BYTES [FIELD...]
 *
 * It does what every HTTP server on this kernel has to do (wait, receive, find the end of a request, send one
 * answer per request, and hold them together when requests come together) and nothing else. It looks at no
 * method, no path and no header. The size of a request's body is therefore not read from its Content-Length but
 * given on the command line, the same for all requests of a run; the body is still received and skipped.
 * The answer has the head that poorhttp sends, the FIELDs, and the body of the file; its Date stands still.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS = 512, COPIES = 64, RECEIVE = 65536, BACKLOG = 2048, MOST_FILES = 1 << 20 };

struct connection {
    unsigned matched; /* bytes of "\r\n\r\n" seen at the end of what was received so far */
    size_t skip;      /* bytes of the current request's body still to come */
    size_t owed;      /* bytes of answers not sent yet */
};

static size_t request_body;
static char *answers; /* COPIES answers in a row, so that pipelined requests need one send */
static size_t answer_size;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* The number of requests that end within these bytes. */
static size_t count_requests(struct connection *connection, const char *at, const char *end) {
    static const char blank_line[] = "\r\n\r\n";
    size_t requests = 0;
    while (at < end) {
        if (connection->skip) {
            size_t there = (size_t)(end - at);
            size_t taken = connection->skip < there ? connection->skip : there;
            connection->skip -= taken;
            at += taken;
            requests += connection->skip == 0;
            continue;
        }
        if (connection->matched == 0) {
            at = memchr(at, '\r', (size_t)(end - at));
            if (at == NULL)
                break;
        }
        if (*at == blank_line[connection->matched])
            connection->matched++;
        else
            connection->matched = *at == '\r';
        at++;
        if (connection->matched == 4) {
            connection->matched = 0;
            connection->skip = request_body;
            requests += request_body == 0;
        }
    }
    return requests;
}

/* Sends what is owed until the socket is full. Returns -1 if the connection is gone. */
static int send_owed(int fd, struct connection *connection) {
    while (connection->owed) {
        size_t begun = (answer_size - connection->owed % answer_size) % answer_size;
        size_t there = COPIES * answer_size - begun;
        size_t size = connection->owed < there ? connection->owed : there;
        ssize_t sent = send(fd, answers + begun, size, MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN ? 0 : -1;
        connection->owed -= (size_t)sent;
        if ((size_t)sent < size)
            return 0; /* full: the edge of writability will tell */
    }
    return 0;
}

static int receive_and_answer(int fd, struct connection *connection) {
    static char buffer[RECEIVE];
    for (;;) {
        ssize_t received = recv(fd, buffer, sizeof buffer, 0);
        if (received == 0)
            return -1;
        if (received < 0)
            return errno == EAGAIN ? 0 : -1;
        connection->owed += answer_size * count_requests(connection, buffer, buffer + received);
        if (send_owed(fd, connection) < 0)
            return -1;
        if ((size_t)received < sizeof buffer)
            return 0; /* a short read means drained: what comes later is a new edge */
    }
}

static void build_answers(const char *body_file, const char *content_type, char **fields) {
    FILE *file = fopen(body_file, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        fail(body_file);
    size_t body_size = (size_t)ftell(file);
    rewind(file);
    char head[1024];
    int head_size = snprintf(head, sizeof head,
                             "HTTP/1.1 200 OK\r\nServer: poorhttp\r\nDate: Fri, 02 Oct 2009 12:00:00 GMT\r\n"
                             "Content-Type: %s\r\nContent-Length: %zu\r\n",
                             content_type, body_size);
    for (; *fields && head_size > 0 && (size_t)head_size < sizeof head; fields++)
        head_size += snprintf(head + head_size, sizeof head - (size_t)head_size, "%s\r\n", *fields);
    if (head_size > 0 && (size_t)head_size < sizeof head)
        head_size += snprintf(head + head_size, sizeof head - (size_t)head_size, "\r\n");
    if (head_size < 0 || (size_t)head_size >= sizeof head) {
        fprintf(stderr, "floor: the head is too long\n");
        exit(2);
    }
    answer_size = (size_t)head_size + body_size;
    answers = malloc(COPIES * answer_size);
    if (answers == NULL)
        fail("malloc");
    memcpy(answers, head, (size_t)head_size);
    if (fread(answers + head_size, 1, body_size, file) != body_size)
        fail(body_file);
    fclose(file);
    for (int copy = 1; copy < COPIES; copy++)
        memcpy(answers + (size_t)copy * answer_size, answers, answer_size);
}

static int listen_on(int port) {
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, BACKLOG) < 0)
        fail("listen");
    return fd;
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: floor PORT BODY_FILE CONTENT_TYPE REQUEST_BODY_BYTES [FIELD...]\n");
        return 2;
    }
    build_answers(argv[2], argv[3], argv + 5);
    request_body = strtoul(argv[4], NULL, 10);

    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        fail("getrlimit");
    if (files.rlim_cur > MOST_FILES)
        files.rlim_cur = MOST_FILES; /* the limit may be "unlimited" */
    struct connection *connections = calloc(files.rlim_cur, sizeof *connections);
    int listener = listen_on(atoi(argv[1]));
    int poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (connections == NULL || poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event) < 0)
        fail("epoll");

    struct epoll_event events[EVENTS];
    for (;;) {
        int ready = epoll_wait(poller, events, EVENTS, -1);
        if (ready < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                int on = 1, accepted;
                while ((accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
                    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                    connections[accepted] = (struct connection){0};
                    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
                    event.data.fd = accepted;
                    if (epoll_ctl(poller, EPOLL_CTL_ADD, accepted, &event) < 0)
                        fail("epoll_ctl");
                }
                continue;
            }
            int gone = 0;
            if (events[i].events & EPOLLOUT)
                gone = send_owed(fd, &connections[fd]);
            if (!gone && events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
                gone = receive_and_answer(fd, &connections[fd]);
            if (gone)
                close(fd);
        }
    }
}
