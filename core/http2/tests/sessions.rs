//! Cases of sessions, with the client's bytes split in different ways.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../http/tests/case/blocks.rs"]
#[allow(dead_code)]
mod blocks;
mod session;

use std::panic::{AssertUnwindSafe, catch_unwind};

use blocks::{Block, blocks};
use poorhttp_http2::Options;
use session::Session;

const FILES: [(&str, &str); 6] = [
    ("attacks.txt", include_str!("cases/attacks.txt")),
    ("frames.txt", include_str!("cases/frames.txt")),
    ("requests.txt", include_str!("cases/requests.txt")),
    ("responses.txt", include_str!("cases/responses.txt")),
    ("streams.txt", include_str!("cases/streams.txt")),
    ("windows.txt", include_str!("cases/windows.txt")),
];

fn options(words: &[String]) -> Options {
    let mut options = Options::default();
    for word in words {
        let (name, value) = word.split_once('=').unwrap();
        let value: u32 = value.parse().unwrap();
        let limits = &mut options.limits;
        match name {
            "streams" => options.streams = value,
            "stream_window" => options.stream_window = value,
            "connection_window" => options.connection_window = value,
            "resets" => options.resets = value,
            "frames" => options.frames = value,
            "head" => limits.head = value as usize,
            "fields" => limits.fields = value as usize,
            "field_line" => limits.field_line = value as usize,
            "request_line" => limits.request_line = value as usize,
            "trailers" => limits.trailers = value as usize,
            "body" => limits.body = value.into(),
            _ => panic!("{name}: no option"),
        }
    }
    options
}

fn run(case: &Block, piece: usize) {
    let mut session = Session::new(options(&case.words("options")), piece);
    if case.text("preface") != "no" {
        session.begin();
    }
    for (number, step) in case.lines("steps").iter().enumerate() {
        let outcome = catch_unwind(AssertUnwindSafe(|| session.step(step)));
        assert!(outcome.is_ok(), "{}, step {}: {step}, {piece} bytes at once", case.text("name"), number + 1);
    }
    let rest = (&session.events, &session.sent);
    assert!(rest.0.is_empty() && rest.1.is_empty(), "{}: besides its steps {rest:?}", case.text("name"));
}

#[test]
fn every_case_has_its_steps_however_its_bytes_arrive() {
    let cases = blocks(FILES, &["session"], usize::MAX);
    assert!(cases.len() > 100);
    let pieces = [usize::MAX, 1, 7, 1000];
    let is_wrong = |case: &&Block| catch_unwind(|| pieces.iter().for_each(|piece| run(case, *piece))).is_err();
    let wrong: Vec<_> = cases.iter().filter(is_wrong).map(|case| case.text("name")).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
