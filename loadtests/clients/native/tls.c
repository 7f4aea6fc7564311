/* A client that measures TLS: handshakes, full and resumed, and answers on kept connections.
 *
 *     tls PORT CONNECTIONS SECONDS plain|1.2|1.3 full|resumed|keep TARGET
 *
 * It asks for TARGET on CONNECTIONS at once until SECONDS are over: with `full` and `resumed` each request has a connection
 * of its own, in `resumed` with the session of the one before; with `keep` a connection is kept. All answers must have the
 * status 200 and say how long they are. What is offered is the same for every server: AES-128-GCM and X25519. Certificates are not
 * verified. The session is closed by close_notify.
 *
 * It writes `negotiated PROTOCOL CIPHER HANDSHAKES RESUMED`, and the line that wrk.lua writes. Times are from connect(2),
 * or on a kept connection from the request, to the end of the answer.
 */
#include "client.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

enum { EVENTS = 512, RECEIVE = 65536, HEAD = 8192 };
enum state { CONNECTING, HANDSHAKE, ASKING, HEADING, BODY };

struct connection {
    int fd;
    bool open;
    enum state state;
    SSL *ssl;
    SSL_SESSION *session; /* of the connection before */
    uint64_t begun, left; /* left: octets of the body still to come */
    size_t come;
    bool chunked;
    struct chunks chunks;
    char head[HEAD + 1];
};

static SSL_CTX *context;
static bool keep, resume;
static char *input, request[1024], negotiated[128];
static int request_size;
static uint64_t *times, received, handshakes, resumed, end;
static size_t answered, capacity;

static void begin(struct connection *connection) {
    connection->fd = new_socket();
    connection->open = connection->fd >= 0;
    connection->state = CONNECTING;
    connection->begun = now();
    connection->come = 0;
    if (!connection->open || !begin_connecting(connection->fd, connection))
        fail("connect");
}

static int keep_session(SSL *ssl, SSL_SESSION *session) {
    struct connection *connection = SSL_get_app_data(ssl);
    SSL_SESSION_free(connection->session);
    connection->session = session;
    return 1;
}

static void finish(struct connection *connection, bool well) {
    if (connection->ssl) {
        if (well)
            SSL_shutdown(connection->ssl);
        /* What a resumed session of TLS 1.2 goes on by is not told otherwise. */
        if (well && resume && SSL_version(connection->ssl) == TLS1_2_VERSION)
            keep_session(connection->ssl, SSL_get1_session(connection->ssl));
        SSL_free(connection->ssl);
        connection->ssl = NULL;
    }
    ERR_clear_error();
    close(connection->fd);
    connection->open = false;
}

static void lose(struct connection *connection, enum kind kind) {
    if (errors[kind]++ == 0 && kind == CONNECT)
        ERR_print_errors_fp(stderr);
    finish(connection, false);
    if (now() < end && errors[kind] < 1000)
        begin(connection);
}

static void watch(struct connection *connection, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = connection};
    epoll_ctl(poller, EPOLL_CTL_MOD, connection->fd, &event);
}

/* Whether what failed is to be tried again, when the poller tells; `error` is that of SSL_get_error. */
static bool wants(struct connection *connection, int error) {
    if (error == SSL_ERROR_WANT_WRITE)
        watch(connection, EPOLLOUT);
    else if (error == SSL_ERROR_WANT_READ)
        watch(connection, EPOLLIN);
    return error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_READ;
}

static void ask(struct connection *connection) {
    connection->state = HEADING;
    connection->come = 0;
    if (keep)
        connection->begun = now();
    ssize_t sent = connection->ssl ? SSL_write(connection->ssl, request, request_size)
                                   : send(connection->fd, request, (size_t)request_size, MSG_NOSIGNAL);
    watch(connection, EPOLLIN);
    if (sent != request_size)
        lose(connection, WRITE);
}

static void shake_hands(struct connection *connection) {
    int done = SSL_do_handshake(connection->ssl);
    if (done != 1) {
        if (!wants(connection, SSL_get_error(connection->ssl, done)))
            lose(connection, CONNECT);
        return;
    }
    handshakes++;
    resumed += SSL_session_reused(connection->ssl) != 0;
    if (!negotiated[0])
        snprintf(negotiated, sizeof negotiated, "%s %s", SSL_get_version(connection->ssl), SSL_get_cipher(connection->ssl));
    ask(connection);
}

static void connected(struct connection *connection) {
    if (!is_connected(connection->fd)) {
        lose(connection, CONNECT);
    } else if (context == NULL) {
        ask(connection);
    } else {
        connection->ssl = made(SSL_new(context));
        SSL_set_fd(connection->ssl, connection->fd);
        SSL_set_app_data(connection->ssl, connection);
        SSL_set_connect_state(connection->ssl);
        if (resume && connection->session)
            SSL_set_session(connection->ssl, connection->session);
        connection->state = HANDSHAKE;
        shake_hands(connection);
    }
}

static void conclude(struct connection *connection) {
    uint64_t time = now();
    times = room(times, answered, &capacity, sizeof *times);
    times[answered++] = time - connection->begun;
    if (!keep)
        finish(connection, true);
    if (time >= end)
        return;
    if (keep)
        ask(connection);
    else
        begin(connection);
}

/* Octets that have come; 0 for the end or an error, less if there are none now. */
static ssize_t receive(struct connection *connection, char *to, size_t most) {
    if (connection->ssl == NULL) {
        ssize_t size = recv(connection->fd, to, most, 0);
        return size < 0 && errno == EAGAIN ? -1 : size < 0 ? 0 : size;
    }
    int size = SSL_read(connection->ssl, to, (int)most);
    if (size > 0)
        return size;
    return wants(connection, SSL_get_error(connection->ssl, size)) ? -1 : 0;
}

static void take_answer(struct connection *connection) {
    for (;;) {
        bool heading = connection->state == HEADING;
        char *to = heading ? connection->head + connection->come : input;
        ssize_t size = receive(connection, to, heading ? HEAD - connection->come : RECEIVE);
        if (size < 0)
            return;
        if (size == 0) {
            lose(connection, READ);
            return;
        }
        received += (uint64_t)size;
        const char *body = to;
        if (heading) {
            connection->come += (size_t)size;
            connection->head[connection->come] = '\0';
            char *over = strstr(connection->head, "\r\n\r\n");
            if (over == NULL && connection->come < HEAD)
                continue;
            const char *length = over ? field(connection->head, "\r\nContent-Length:") : NULL;
            connection->chunked = over && says(connection->head, "\r\nTransfer-Encoding:", "chunked");
            if ((length == NULL && !connection->chunked) || strncmp(connection->head, "HTTP/1.1 200", 12) != 0) {
                lose(connection, STATUS);
                return;
            }
            connection->left = length ? strtoull(length, NULL, 10) : 1;
            connection->chunks = (struct chunks){0};
            connection->state = BODY;
            body = over + 4;
            size = connection->head + connection->come - body;
        }
        bool excess = connection->chunked ? take_chunks(&connection->chunks, body, (size_t)size) < (size_t)size
                                          : (uint64_t)size > connection->left;
        if (excess) {
            lose(connection, READ);
            return;
        }
        connection->left = connection->chunked ? !connection->chunks.over : connection->left - (uint64_t)size;
        if (connection->left == 0) {
            conclude(connection);
            return;
        }
    }
}

static void proceed(struct connection *connection) {
    if (connection->state == CONNECTING)
        connected(connection);
    else if (connection->state == HANDSHAKE)
        shake_hands(connection);
    else
        take_answer(connection);
}

static void prepare(const char *version) {
    if (strcmp(version, "plain") == 0)
        return;
    int number = strcmp(version, "1.2") == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
    context = made(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep_session);
    if (!SSL_CTX_set_min_proto_version(context, number) || !SSL_CTX_set_max_proto_version(context, number) ||
        !SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") ||
        !SSL_CTX_set_cipher_list(context, "ECDHE+AES128+AESGCM") || !SSL_CTX_set1_groups_list(context, "X25519:P-256")) {
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 7) {
        fprintf(stderr, "usage: tls PORT CONNECTIONS SECONDS plain|1.2|1.3 full|resumed|keep TARGET\n");
        return 2;
    }
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[1]))};
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    size_t count = strtoul(argv[2], NULL, 10);
    keep = strcmp(argv[5], "keep") == 0;
    resume = strcmp(argv[5], "resumed") == 0;
    prepare(argv[4]);
    request_size = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", argv[6],
                            keep ? "" : "Connection: close\r\n");
    input = made(malloc(RECEIVE));
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0)
        fail("epoll_create1");
    struct connection *connections = made(calloc(count, sizeof *connections));
    uint64_t begun = now();
    end = begun + (uint64_t)(strtod(argv[3], NULL) * 1e9);
    for (size_t i = 0; i < count; i++)
        begin(&connections[i]);
    struct epoll_event events[EVENTS];
    for (uint64_t time; (time = now()) < end;) {
        int ready = epoll_wait(poller, events, EVENTS, (int)((end - time) / 1000000) + 1);
        if (ready < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int i = 0; i < ready; i++)
            if (((struct connection *)events[i].data.ptr)->open)
                proceed(events[i].data.ptr);
    }
    printf("negotiated %s %lu %lu\n", negotiated[0] ? negotiated : "- -", handshakes, resumed);
    report_times(times, answered, now() - begun, received);
    printf("}\n");
}
