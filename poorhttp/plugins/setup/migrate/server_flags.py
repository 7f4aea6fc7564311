"""The flags of other servers' command lines, and the settings that they stand for.

`NAME` is a flag `--NAME` with a value, `NAME!` a switch, `-x NAME` a short form, and `A=NAME` a
flag `--A` of the setting NAME.
"""

from __future__ import annotations

from dataclasses import dataclass

GUNICORN = """
-c config -b bind backlog -w workers -k worker-class=worker_class threads
worker-connections=worker_connections max-requests=max_requests
max-requests-jitter=max_requests_jitter -t timeout graceful-timeout=graceful_timeout
keep-alive=keepalive limit-request-line=limit_request_line
limit-request-fields=limit_request_fields limit-request-field_size=limit_request_field_size
limit-request-field-size=limit_request_field_size reload! reload-engine=reload_engine
reload-extra-file=reload_extra_files spew! check-config=check_config! print-config=print_config!
preload=preload_app! no-sendfile=sendfile! reuse-port=reuse_port! chdir -D daemon! -e env=raw_env
-p pid=pidfile worker-tmp-dir=worker_tmp_dir -u user -g group -m umask initgroups!
forwarded-allow-ips=forwarded_allow_ips access-logfile=accesslog
disable-redirect-access-to-syslog=disable_redirect_access_to_syslog!
access-logformat=access_log_format error-logfile=errorlog log-file=errorlog log-level=loglevel
capture-output=capture_output! logger-class=logger_class log-config=logconfig
log-config-json=logconfig_json log-syslog-to=syslog_addr log-syslog=syslog!
log-syslog-prefix=syslog_prefix log-syslog-facility=syslog_facility
-R enable-stdio-inheritance=enable_stdio_inheritance! statsd-host=statsd_host
dogstatsd-tags=dogstatsd_tags statsd-prefix=statsd_prefix
enable-backlog-metric=enable_backlog_metric! -n name=proc_name pythonpath paste paster=paste
proxy-protocol=proxy_protocol! proxy-allow-from=proxy_allow_ips protocol
uwsgi-allow-from=uwsgi_allow_ips keyfile certfile ssl-version=ssl_version cert-reqs=cert_reqs
ca-certs=ca_certs suppress-ragged-eofs=suppress_ragged_eofs!
do-handshake-on-connect=do_handshake_on_connect! ciphers http-protocols=http_protocols
http2-cleartext=http2_cleartext http2-max-concurrent-streams=http2_max_concurrent_streams
http2-initial-window-size=http2_initial_window_size http2-max-frame-size=http2_max_frame_size
http2-max-header-list-size=http2_max_header_list_size paste-global=raw_paste_global_conf
permit-obsolete-folding=permit_obsolete_folding! strip-header-spaces=strip_header_spaces!
permit-unconventional-http-method=permit_unconventional_http_method!
permit-unconventional-http-version=permit_unconventional_http_version!
casefold-http-method=casefold_http_method! forwarder-headers=forwarder_headers
header-map=header_map asgi-loop=asgi_loop asgi-lifespan=asgi_lifespan
asgi-disconnect-grace-period=asgi_disconnect_grace_period
websocket-max-message-size=websocket_max_message_size http-parser=http_parser root-path=root_path
dirty-app=dirty_apps dirty-workers=dirty_workers dirty-timeout=dirty_timeout
dirty-threads=dirty_threads dirty-graceful-timeout=dirty_graceful_timeout
control-socket=control_socket control-socket-mode=control_socket_mode
no-control-socket=control_socket_disable!
"""

WAITRESS = """
call! host port listen threads url-scheme=url_scheme url-prefix=url_prefix ident
unix-socket=unix_socket unix-socket-perms=unix_socket_perms trusted-proxy=trusted_proxy
trusted-proxy-count=trusted_proxy_count trusted-proxy-headers=trusted_proxy_headers
log-untrusted-proxy-headers=log_untrusted_proxy_headers!
clear-untrusted-proxy-headers=clear_untrusted_proxy_headers! backlog recv-bytes=recv_bytes
send-bytes=send_bytes outbuf-overflow=outbuf_overflow
outbuf-high-watermark=outbuf_high_watermark inbuf-overflow=inbuf_overflow
connection-limit=connection_limit cleanup-interval=cleanup_interval
channel-timeout=channel_timeout log-socket-errors=log_socket_errors!
max-request-header-size=max_request_header_size max-request-body-size=max_request_body_size
expose-tracebacks=expose_tracebacks! asyncore-loop-timeout=asyncore_loop_timeout
asyncore-use-poll=asyncore_use_poll! channel-request-lookahead=channel_request_lookahead
server-name=server_name ipv4! ipv6! app=app_module
"""

UVICORN = """
host port uds fd reload! reload-dir reload-include reload-exclude reload-delay workers loop http
http2! ws ws-max-size ws-max-queue ws-ping-interval ws-ping-timeout ws-per-message-deflate lifespan
interface env-file log-config log-level access-log! use-colors! proxy-headers! server-header!
date-header! forwarded-allow-ips root-path limit-concurrency backlog limit-max-requests
limit-max-requests-jitter timeout-keep-alive timeout-graceful-shutdown timeout-worker-healthcheck
ssl-keyfile ssl-certfile ssl-keyfile-password ssl-version ssl-cert-reqs ssl-ca-certs ssl-ciphers
header app-dir h11-max-incomplete-event-size factory! version!
"""

HYPERCORN = """
access-log access-logfile access-logformat backlog -b bind ca-certs certfile cert-reqs ciphers
-c config -D daemon! debug! error-log error-logfile log-file graceful-timeout read-timeout
max-requests max-requests-jitter -g group -k worker-class keep-alive keyfile keyfile-password
insecure-bind log-config log-level -p pid quic-bind reload! root-path server-name statsd-host
statsd-prefix -m umask -u user verify-mode websocket-ping-interval -w workers
"""

DAPHNE = """
-p port -b bind websocket_timeout websocket_connect_timeout -u unix-socket fd -e endpoint
-v verbosity -t http-timeout access-log log-fmt ping-interval ping-timeout
application-close-timeout root-path proxy-headers! proxy-headers-host proxy-headers-port
-s server-name no-server-name!
"""

GRANIAN = """
host port uds uds-permissions interface http ws! workers blocking-threads
blocking-threads-idle-timeout runtime-threads runtime-blocking-threads runtime-mode loop task-impl
backlog backpressure http1-buffer-size http1-header-read-timeout http1-keep-alive!
http1-pipeline-flush! http2-adaptive-window! http2-initial-connection-window-size
http2-initial-stream-window-size http2-keep-alive-interval http2-keep-alive-timeout
http2-max-concurrent-streams http2-max-frame-size http2-max-headers-size
http2-max-send-buffer-size log! log-level log-config access-log! access-log-fmt ssl-certificate
ssl-keyfile ssl-keyfile-password ssl-protocol-min ssl-ca ssl-crl ssl-client-verify!
url-path-prefix respawn-failed-workers! respawn-interval rss-sample-interval rss-samples
workers-lifetime workers-max-rss workers-kill-timeout factory! working-dir env-files
static-path-mount static-path-route static-path-expires static-path-dir-to-file reload!
reload-paths reload-ignore-dirs reload-ignore-patterns reload-ignore-paths reload-tick
reload-ignore-worker-failure! process-name pid-file metrics! metrics-address metrics-port
metrics-scrape-interval threads threading-mode
"""

#: Short forms of uWSGI with a value; its other short forms are switches. Long names need no table:
#: a flag is followed by its value, unless that begins with a hyphen.
UWSGI_WITH_VALUE = "spwHbltRCzdxyjSAQO"

#: Short forms of uWSGI, and the settings that they stand for.
UWSGI_SHORT = {
    "p": "processes",
    "w": "module",
    "s": "socket",
    "H": "home",
    "C": "chmod-socket",
    "d": "daemonize",
    "L": "disable-logging",
    "t": "harakiri",
    "M": "master",
    "b": "buffer-size",
    "l": "listen",
    "R": "max-requests",
    "z": "socket-timeout",
    "T": "enable-threads",
    "i": "single-interpreter",
    "m": "memory-report",
    "r": "reaper",
    "O": "optimize",
    "S": "set",
    "x": "xml",
    "y": "yaml",
    "j": "json",
    "Q": "spooler",
    "A": "sharedarea",
    "a": "abstract-socket",
    "c": "cgi-mode",
}

#: Switches of uWSGI, which take no value although a word follows that is no flag.
UWSGI_SWITCHES = frozenset(
    (
        *("master", "enable-threads", "vacuum", "die-on-term", "need-app", "no-orphans", "lazy"),
        *("single-interpreter", "thunder-lock", "lazy-apps", "memory-report", "disable-logging"),
        *("manage-script-name", "log-master", "static-gzip-all", "catch-exceptions", "strict"),
        *("auto-procname", "post-buffering-off", "http-keepalive", "harakiri-verbose"),
        *("close-on-exec", "ignore-sigpipe", "ignore-write-errors", "disable-write-exception"),
        *(
            "log-x-forwarded-for",
            "log-5xx",
            "log-4xx",
            "reuse-port",
            "so-keepalive",
            "emperor-tyrant",
        ),
        *("http-auto-chunked", "http-chunked-input", "http-raw-body", "py-call-osafterfork"),
        *("gevent-monkey-patch", "master-as-root", "reaper", "honour-stdin", "http-websockets"),
    )
)


@dataclass(frozen=True)
class Flag:
    """A flag: the name of its setting, and whether it takes a value."""

    setting: str
    takes_value: bool


def flags(table: str) -> dict[str, Flag]:
    """Return the flags of a table, by their names with dashes."""
    found: dict[str, Flag] = {}
    short = ""
    for word in table.split():
        if word.startswith("-"):
            short = word
            continue
        name, equals, setting = word.rstrip("!").partition("=")
        flag = Flag(setting if equals else name, not word.endswith("!"))
        found[f"--{name}"] = flag
        if short:
            found[short] = flag
            short = ""
    return found
