"""Options of other servers that have no equivalent here: what to do instead.

Of gunicorn, uvicorn, hypercorn, granian, waitress, uWSGI, mod_wsgi-express, puma, Flask and Django.
Those with an equivalent are `aliases` of options. Imported only for an error.
"""

from __future__ import annotations

#: Pages of the manual.
_COMMANDS = "docs/reference/command.md"
_CONTROL = "docs/guides/control.md"
_DEPLOY = "docs/guides/deploy.md"
_RELOAD = "docs/guides/reload.md"
_SERVICES = "docs/guides/services.md"
_PROXIES = "docs/guides/proxies.md"
_TRUST = "docs/guides/trusted-proxies.md"
_LOGS = "docs/reference/logs.md"
_HTTPS = "docs/guides/tls.md"
_CONTENT = "docs/guides/static-files.md"
_MONITORING = "docs/guides/monitoring.md"
_RELIABILITY = "docs/internals/reliability.md"
_WRITING_CODE = "docs/guides/development.md"
_SECURITY = "docs/reference/security.md"
_UPGRADE = "docs/guides/websockets.md"
_OTHER_CONFIGURATIONS = "docs/guides/migrate.md"

#: Names with blanks between, the advice for them, and the page that says more.
_ADVICE = (
    # Processes.
    (
        "daemon daemonize daemonize2",
        "the server stays in the foreground; let systemd, a container or `&` keep it in the "
        "background",
        _DEPLOY,
    ),
    (
        "worker_tmp_dir",
        "leave it out: workers are not watched by files. temp_dir is for request bodies",
        _COMMANDS,
    ),
    ("initgroups", "leave it out: workers always join the groups of user", _COMMANDS),
    (
        "master m_master no_orphans single_interpreter enable_threads need_app vacuum die_on_term "
        "lazy lazy_apps thunder_lock strict auto_procname py_call_osafterfork",
        "leave it out: it is so in any case; poorhttp migrate reads a whole command line of uWSGI",
        _OTHER_CONFIGURATIONS,
    ),
    ("procname procname_prefix procname_append procname_master", "write --proc-name", _COMMANDS),
    (
        "cheaper cheaper_initial cheaper_step cheaper_algo initial_workers minimum_spare_workers "
        "maximum_spare_workers max_clients",
        "the number of workers is fixed, and an idle one costs little; write --workers, and change "
        "it with poorhttp ctl add",
        _CONTROL,
    ),
    (
        "control_socket control_socket_mode no_control_socket stats stats_server memory_report "
        "master_fifo fifo server_status server_metrics metrics metrics_address metrics_port "
        "metrics_scrape_interval control_url control_token state",
        "write --admin unix:/run/poorhttp.admin: poorhttp ctl and Prometheus ask there",
        _MONITORING,
    ),
    (
        "emperor vassals vassals_dir attach_daemon mule spooler cron",
        "services of one server are sections [service:NAME]; other programs are for systemd",
        _SERVICES,
    ),
    (
        "touch_reload touch_workers_reload touch_chain_reload fs_reload",
        "send HUP, or run poorhttp ctl reload",
        _RELOAD,
    ),
    (
        "py_autoreload py_auto_reload python_auto_reload",
        "write --autoreload, or run poorhttp dev",
        _WRITING_CODE,
    ),
    (
        "respawn_failed_workers no_respawn_failed_workers respawn_interval rss_sample_interval "
        "rss_samples timeout_worker_healthcheck startup_timeout restart_interval",
        "leave it out: a worker that dies is replaced at once, and later if it dies again",
        _RELIABILITY,
    ),
    (
        "deadlock_timeout inactivity_timeout eviction_timeout interrupt_timeout cpu_time_limit "
        "response_socket_timeout socket_timeout http_timeout connect_timeout proxy_timeout "
        "ignore_activity harakiri_verbose harakiri_graceful_timeout",
        "write --request-timeout for what the application does, --write-timeout for its clients",
        _RELIABILITY,
    ),
    (
        "dirty_app dirty_workers dirty_timeout dirty_threads dirty_graceful_timeout",
        "there are no such workers: long work is for a queue of tasks, such as Celery or RQ",
        _COMMANDS,
    ),
    (
        "on_starting on_reload when_ready pre_fork post_fork post_worker_init worker_int "
        "worker_abort pre_exec pre_request post_request child_exit worker_exit nworkers_changed "
        "on_exit on_ready exec_asap hook_post_fork",
        "name functions in the section [hooks] of the ini file",
        "docs/guides/hooks.md",
    ),
    ("gevent ugreen asyncio tornado", "write --mode gevent", _COMMANDS),
    # Target.
    (
        "module wsgi wsgi_file file callable app call factory paste_file application_type "
        "entry_point callable_object document_root application",
        "the application is the argument without a name, or target in a file: "
        "package.module:application, path/file.py:application, module:create_app(), static:FOLDER",
        _COMMANDS,
    ),
    (
        "paste paster paste_global ini_paste ini_paste_logged",
        "write paste:FILE as the target; or run pserve, with use = egg:poorhttpd#main in FILE",
        "docs/guides/pyramid.md",
    ),
    (
        "ini yaml yml xml json include emperor_config",
        "poorhttp migrate FILE writes an ini file for this server, which -c reads",
        _OTHER_CONFIGURATIONS,
    ),
    (
        "virtualenv venv home pyhome python_eggs plugin plugins",
        "leave it out, and run the command poorhttp of that environment: VENV/bin/poorhttp",
        _COMMANDS,
    ),
    (
        "root_path url_prefix url_path_prefix mount_point manage_script_name",
        "write --mount /PREFIX=TARGET; a proxy can also send X-Forwarded-Prefix",
        "docs/guides/hosts.md",
    ),
    (
        "env_file env_files environment for_readline setenv passenv envvars_script",
        "write --env NAME=VALUE, or env in a file with a variable on each line; systemd has "
        "EnvironmentFile=, docker --env-file",
        _COMMANDS,
    ),
    (
        "static_path_route static_path_mount static_path_dir_to_file static_path_expires url_alias "
        "check_static static_index static_expires nostatic insecure directory_index mime_types",
        "write --static /PREFIX=FOLDER; options with static_ set types, headers and the index",
        _CONTENT,
    ),
    (
        "interface lifespan loop ws ws_max_size ws_max_queue ws_ping_interval ws_ping_timeout "
        "ws_per_message_deflate no_ws asgi_loop asgi_lifespan asgi_disconnect_grace_period "
        "task_impl runtime_mode runtime_threads runtime_blocking_threads "
        "blocking_threads_idle_timeout reset_contextvars",
        "leave it out: it is for ASGI, and this server runs WSGI applications",
        _COMMANDS,
    ),
    (
        "websocket_max_message_size websocket_ping_interval http_websockets",
        "the application's library speaks WebSocket, and has such options",
        _UPGRADE,
    ),
    # Listening and HTTP.
    (
        "ipv4 ipv6 no_ipv4 no_ipv6 use_ipv6",
        "write each address: --bind 0.0.0.0:8080 --bind [::]:8080",
        _COMMANDS,
    ),
    (
        "insecure_bind quic_bind https_port http_to_https shared_socket https_socket",
        "write each address: --bind 0.0.0.0:80 --bind https://0.0.0.0:443; there is no QUIC",
        _HTTPS,
    ),
    (
        "protocol socket_protocol uwsgi_socket scgi_socket fastcgi_socket http11_socket",
        "write --bind uwsgi://127.0.0.1:3031, or scgi://, fastcgi://",
        "docs/guides/gateways.md",
    ),
    (
        "http_protocols http2 http2_cleartext http2_max_concurrent_streams "
        "http2_initial_window_size "
        "http2_max_frame_size http2_max_header_list_size http2_adaptive_window "
        "no_http2_adaptive_window http2_initial_connection_window_size "
        "http2_initial_stream_window_size http2_keep_alive_interval http2_keep_alive_timeout "
        "http2_max_headers_size http2_max_send_buffer_size",
        "leave it out: HTTP/2 is spoken by the proxy in front",
        _PROXIES,
    ),
    (
        "http_parser http1_buffer_size http1_pipeline_flush no_http1_pipeline_flush buffer_size "
        "recv_bytes send_bytes outbuf_overflow post_buffering post_buffering_bufsize "
        "asyncore_loop_timeout asyncore_use_poll cleanup_interval send_buffer_size "
        "receive_buffer_size header_buffer_size response_buffer_size response_flush_delay "
        "http_auto_chunked h11_max_incomplete_event_size",
        "leave it out; max_request_line, max_header_size, max_headers and max_request_header_size "
        "limit a request, body_buffer_size and spool_limit what is kept of it and its response",
        "docs/reference/options.md",
    ),
    (
        "http1_keep_alive no_http1_keep_alive http_keepalive so_keepalive so_send_timeout",
        "connections are always kept open; --keepalive-timeout says for how long",
        _COMMANDS,
    ),
    (
        "no_sendfile sendfile enable_sendfile",
        "leave it out: files are sent by the kernel where it can",
        _CONTENT,
    ),
    (
        "permit_obsolete_folding strip_header_spaces permit_unconventional_http_method "
        "permit_unconventional_http_version casefold_http_method map_head_to_get chunked_request",
        "leave it out: what is not HTTP is refused, because proxies and servers that read it "
        "differently can be attacked",
        _SECURITY,
    ),
    (
        "forwarder_headers header_map trusted_proxy_count log_untrusted_proxy_headers "
        "clear_untrusted_proxy_headers proxy_headers secure_scheme_headers url_scheme server_name "
        "server_alias log_x_forwarded_for",
        "write --trusted-proxies and --forwarded-headers: a client's address, scheme and host come "
        "from those proxies only",
        _TRUST,
    ),
    (
        "date_header no_date_header header add_header",
        "leave it out, or set it in the application or in the proxy; files have --static-header",
        _CONTENT,
    ),
    (
        "backpressure channel_request_lookahead daemon_backlog",
        "leave it out: --queue-timeout limits how long requests wait, --abort-on-close drops those "
        "of clients that have left",
        _RELIABILITY,
    ),
    ("read_timeout header_max_timeout", "write --header-timeout and --body-timeout", _RELIABILITY),
    ("header_min_rate body_min_rate body_max_timeout", "write --min-rate", _RELIABILITY),
    # Logs.
    (
        "logger_class logconfig_dict log_config_dict log_master log_format logformat "
        "access_log_fmt log req_logger",
        "write --access-log-format, or --log-config FILE for Python's logging",
        _LOGS,
    ),
    (
        "capture_output enable_stdio_inheritance disable_redirect_access_to_syslog use_colors "
        "no_use_colors no_log log_socket_errors no_log_socket_errors log_to_terminal startup_log "
        "rotate_logs max_log_size log_directory log_maxsize",
        "leave it out: output of the application stays where it goes, logs are --access-log and "
        "--error-log; logrotate sends USR1",
        _LOGS,
    ),
    (
        "log_syslog_prefix log_syslog_facility syslog",
        "write --error-log syslog, --access-log syslog: facilities are daemon and local0",
        _LOGS,
    ),
    ("enable_backlog_metric", "leave it out: the metrics have it", _MONITORING),
    # TLS.
    (
        "ssl_version ciphers ssl_ciphers suppress_ragged_eofs do_handshake_on_connect",
        "leave it out: TLS 1.2 and 1.3 with safe ciphers; --tls-min-version 1.3 refuses 1.2",
        _HTTPS,
    ),
    (
        "ssl_keyfile_password keyfile_password",
        "the key must not be encrypted, and must be readable only by the server's user; openssl "
        "pkey -in KEY -out NEW decrypts it",
        _HTTPS,
    ),
    (
        "ssl_crl ssl_client_verify no_ssl_client_verify verify_mode ssl_verify_client "
        "ssl_certificate_chain_file ssl_environment",
        "write --tls-client-ca FILE, which may hold revocation lists, and --tls-client-auth",
        _HTTPS,
    ),
    # Development.
    (
        "reload_engine reload_dir reload_paths reload_delay reload_tick reload_ignore_dirs "
        "reload_ignore_patterns reload_ignore_paths reload_ignore_worker_failure "
        "no_reload_ignore_worker_failure disable_reloading exclude_patterns",
        "the project's files are watched, by inotify; --reload-include and --reload-exclude name "
        "more and fewer",
        _WRITING_CODE,
    ),
    (
        "spew enable_profiler enable_debugger enable_coverage profiler debug_mode",
        "poorhttp ctl stacks and profile show what a worker does; poorhttp dev has a debugger",
        _CONTROL,
    ),
    ("check_config print_config", "run poorhttp check", _RELOAD),
    ("expose_tracebacks catch_exceptions", "run poorhttp dev", _WRITING_CODE),
    (
        "nothreading without_threads with_threads",
        "write --mode single, or --mode threading",
        _COMMANDS,
    ),
)


#: Single letters, and the name for each.
_LETTERS = {
    "D": "daemon",
    "d": "daemonize",
    "R": "enable_stdio_inheritance",
    "M": "master",
    "i": "single_interpreter",
    "T": "enable_threads",
    "H": "home",
    "L": "no_log",
    "s": "uwsgi_socket",
    "x": "xml",
    "y": "yaml",
    "j": "json",
    "C": "ini",
    "A": "app",
}


def advice(name: str) -> str:
    """Return what to do instead of an option of another server; empty if it is not known.

    Args:
        name: as it is written there, without the hyphens before it.
    """
    plain = _LETTERS.get(name, name).replace("-", "_").lower()
    for known in (plain, plain.removeprefix("no_")):
        for names, text, page in _ADVICE:
            if known in names.split():
                return f"{text} ({page})"
    return ""
