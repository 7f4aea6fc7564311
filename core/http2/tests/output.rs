//! Tests of output that a client does not read, or reads in parts, and of what a server can ask a connection about it.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod session;

use std::sync::Arc;

use poorhttp_http2::{Connection, ErrorCode, Event, Options, PREFACE};
use session::{client, frames};

/// Receives all and returns the last event.
fn feed(connection: &mut Connection, bytes: &[u8]) -> String {
    let (mut rest, mut last) = (bytes, String::new());
    loop {
        match connection.receive(&mut rest) {
            Event::NeedMore => return last,
            event @ Event::Failed(_) => return session::described(&event),
            event => last = session::described(&event),
        }
    }
}

fn begun(options: Options) -> Connection {
    let mut connection = Connection::new(Arc::new(options));
    feed(&mut connection, &[&PREFACE[..], &client("SETTINGS")].concat());
    connection.take_output();
    connection
}

/// A client that asks for answers and does not read them is told so, before they take much memory.
#[test]
fn answers_that_nobody_reads() {
    for (frame, length) in [("PING 0000000000000000", 17), ("SETTINGS", 9)] {
        let mut connection = begun(Options { frames: u32::MAX, ..Options::default() });
        let failed = (1..).find(|_| !feed(&mut connection, &client(frame)).is_empty()).unwrap();
        assert!(failed * length > 60_000 && failed * length < 70_000, "{failed}");
        assert!(connection.is_finished());
        assert_eq!(
            feed(&mut connection, &client(frame)),
            "failed ENHANCE_YOUR_CALM a client that does not read what it asks for"
        );
        // One that reads may ask for ever.
        let mut connection = begun(Options { frames: u32::MAX, ..Options::default() });
        for _ in 0..2 * failed {
            assert_eq!(feed(&mut connection, &client(frame)), "");
            let length = connection.output().len();
            connection.sent(length);
        }
    }
}

/// A client that does not read responses is not read, and gets an error if it is read all the same.
#[test]
fn responses_that_nobody_reads() {
    let mut connection = begun(Options::default());
    let mut stopped = 0;
    for number in 0.. {
        let stream = 2 * number + 1;
        if feed(&mut connection, &client(&format!("HEADERS {stream} end -- get"))).starts_with("failed") {
            break;
        }
        let field = (&b"X-Long"[..], &[b'~'; 4000][..]);
        connection.send_head(stream, 200, [field], true).unwrap();
        stopped += u32::from(!connection.wants_input());
    }
    let output = connection.output().len();
    assert!(output > 1 << 20 && output < (1 << 20) + 8_192 && stopped > 200, "{output}, {stopped}");
}

/// Output goes in any parts, while more comes.
#[test]
fn output_goes_in_parts() {
    for step in [7, 1000, 16_384, 50_000, usize::MAX] {
        let mut connection = begun(Options::default());
        feed(&mut connection, &client("WINDOW_UPDATE 0 10000000"));
        feed(&mut connection, &client("SETTINGS 4=10000000"));
        feed(&mut connection, &client("HEADERS 1 end -- get"));
        connection.send_head(1, 200, [], false).unwrap();
        let content: Vec<u8> = (0..300_000).map(|number| (number % 251) as u8).collect();
        let (mut offered, mut output) = (0, Vec::new());
        while offered < content.len() || !connection.output().is_empty() {
            if offered < content.len() {
                offered += connection.send_data(1, &content[offered..], true).unwrap();
            }
            // Content waits for output to go, but for what one response needs.
            assert!(connection.output().len() < (64 << 10) + 9 * 8 + 100);
            let part = connection.output().len().min(step);
            output.extend_from_slice(&connection.output()[..part]);
            connection.sent(part);
        }
        let frames = frames(&output).into_iter().filter(|frame| frame.kind == session::DATA);
        let received: Vec<u8> = frames.flat_map(|frame| frame.payload).collect();
        assert!(received == content, "{step}");
        assert_eq!(connection.streams(), 0);
    }
}

/// What has come of a frame or a header block is known, so that the embedding can limit how long the rest takes.
#[test]
fn parts_that_have_come() {
    let mut connection = Connection::new(Arc::new(Options::default()));
    assert!(connection.is_mid_frame() && !connection.is_idle());
    let bytes =
        [&PREFACE[..], &client("SETTINGS"), &client("HEADERS 1 end open -- get"), &client("CONTINUATION 1 -- x: y")];
    let whole = [33, 33 + bytes[2].len() + bytes[3].len()];
    let mut taken = 0;
    for byte in bytes.concat().chunks(1) {
        feed(&mut connection, byte);
        taken += 1;
        assert_eq!(connection.is_mid_frame(), !whole.contains(&taken), "{taken}");
        assert_eq!(connection.is_idle(), taken == 33);
    }
    assert_eq!(connection.streams(), 1);
    connection.reset(1, ErrorCode::Cancel);
    assert!(connection.is_idle());
}

/// The end of a response is a flag of its last DATA frame, unless that is sent or belongs to another stream.
#[test]
fn an_end_that_is_told_behind_the_last_content() {
    for (sent, between, expected) in [
        (false, false, 1),
        // The frame is gone.
        (true, false, 2),
        // Another one follows it.
        (false, true, 3),
    ] {
        let mut connection = begun(Options::default());
        for stream in [1, 3] {
            feed(&mut connection, &client(&format!("HEADERS {stream} end -- get")));
            connection.send_head(stream, 200, [], false).unwrap();
        }
        let mut output = connection.take_output();
        assert_eq!(connection.send_data(1, b"a", false), Ok(1));
        if sent {
            output = connection.take_output();
        }
        if between {
            assert_eq!(connection.send_data(3, b"b", false), Ok(1));
        }
        assert_eq!(connection.send_data(1, b"", true), Ok(0));
        let before = if sent { output } else { Vec::new() };
        let got = [frames(&before), frames(&connection.take_output())].concat();
        assert_eq!(got.len(), expected, "{got:?}");
        let last = got.last().unwrap();
        assert_eq!((last.kind, last.stream, last.flags), (session::DATA, 1, 1), "{got:?}");
    }
}

/// Content that the embedding sends itself: only the header of its frame is output, and it counts for the windows.
#[test]
fn content_that_is_sent_elsewhere() {
    let mut connection = begun(Options::default());
    feed(&mut connection, &client("HEADERS 1 end -- get"));
    assert_eq!(connection.begin_data(1, 10), 0, "the head comes first");
    connection.send_head(1, 200, [], false).unwrap();
    connection.take_output();
    assert_eq!(connection.begin_data(1, 100_000), 16_384);
    assert_eq!(connection.take_output(), [0, 64, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!((connection.begin_data(1, 2), connection.room(1)), (2, 65_535 - 16_386));
    connection.push_content(b"ab");
    assert_eq!(connection.send_data(1, b"", true), Ok(0));
    let got = frames(&connection.take_output());
    assert_eq!(
        got.iter().map(|frame| (&frame.payload[..], frame.flags)).collect::<Vec<_>>(),
        [(&b"ab"[..], 0), (b"", 1)]
    );
    assert_eq!((connection.streams(), connection.begin_data(1, 2)), (0, 0));
}
