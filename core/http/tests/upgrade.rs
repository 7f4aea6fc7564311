//! Which requests may ask for another protocol, and which of these for WebSocket alone.

use crate::receiver::receive;

/// Whether an application may be offered another protocol, and whether WebSocket is the only one.
fn asked(line: &str, fields: &[&str]) -> (bool, bool) {
    let text = format!("{line} HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n", fields.join("\r\n"));
    let outcome = receive([text.as_bytes()]);
    let message = outcome.messages.first().or(outcome.unfinished.as_ref()).unwrap_or_else(|| panic!("{text}"));
    (message.head.may_upgrade(&message.bytes), message.head.asks_websocket(&message.bytes))
}

#[test]
fn protocols_that_an_application_may_take() {
    const ASKS: &str = "Connection: Upgrade";
    let websocket = [ASKS, "Upgrade: WebSocket"];
    assert_eq!(asked("GET /", &websocket), (true, true));
    for (protocols, only) in [
        ("Upgrade: websocket, tcp/1.0", false),
        ("Upgrade: websocket\r\nUpgrade: tcp", false),
        ("Upgrade: tcp", false),
        ("Upgrade: h2c, websocket", false),
        ("Upgrade: web socket, tcp", false),
        ("Upgrade: ,websocket,", true),
    ] {
        assert_eq!(asked("GET /", &[ASKS, protocols]), (!protocols.contains("web socket"), only), "{protocols}");
    }
    for protocols in ["h2c", "HTTP/2.0", "h2, h3", "TLS/1.2", "tcp/1/2", "tcp/", "@"] {
        assert_eq!(asked("GET /", &[ASKS, &format!("Upgrade: {protocols}")]), (false, false), "{protocols}");
    }
    assert_eq!(asked("GET /", &[ASKS]), (false, false));
    assert_eq!(asked("GET /", &["Upgrade: websocket"]), (false, true));
    assert_eq!(asked("POST /", &[&websocket[..], &["Content-Length: 0"]].concat()), (false, true));
    for (field, is_taken) in [
        ("Content-Length: 0", true),
        ("Content-Length: 5", false),
        ("Transfer-Encoding: chunked", false),
        ("Expect: 100-continue", false),
    ] {
        assert_eq!(asked("GET /", &[&websocket[..], &[field]].concat()), (is_taken, true), "{field}");
    }
}
