//! Which responses are compressed, how their fields change, and how much memory the encoders in use may take.

#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use poorhttp_codings::Encoders;
use poorhttp_compress::{Compression, Levels, MediaTypes};
use poorhttp_http::{ConditionalFields, ContentCoding, Head};
use poorhttp_interface::codings::{Body, Flush};

fn compression(types: &[&str]) -> Arc<Compression> {
    let types = MediaTypes::new(types.iter().map(|&pattern| pattern.to_owned()));
    Arc::new(Compression::new(vec![ContentCoding::Gzip], types, 1_000, Levels::default(), Arc::new(Encoders)))
}

fn is_eligible(types: &[&str], block: &str, length: Option<u64>) -> bool {
    let head = Head::default();
    compression(types).choose(200, block.as_bytes(), length, &ConditionalFields::of(&head, b"")).is_some()
}

#[test]
fn media_types() {
    for (patterns, value, expected) in [
        (&["text/*"][..], "text/html", true),
        (&["text/*"], "TEXT/HTML; charset=utf-8", true),
        (&["text/*"], "textual/html", false),
        (&["text/html"], "text/html ; charset=utf-8", true),
        (&["text/html"], "text/html5", false),
        (&["+json"], "application/ld+json", true),
        (&["+json"], "application/json", false),
        (&["+json"], "+json", false),
        (&["*"], "image/png", true),
        (&[], "text/html", false),
        (&["a/b", "c/d"], "c/d", true),
    ] {
        assert_eq!(
            is_eligible(patterns, &format!("Content-Type: {value}\r\n"), None),
            expected,
            "{patterns:?} {value}"
        );
    }
    assert!(!is_eligible(&["*"], "Server: none\r\n", None));
}

#[test]
fn the_smallest_length() {
    for (length, expected) in [(None, true), (Some(0), false), (Some(999), false), (Some(1_000), true)] {
        assert_eq!(is_eligible(&["text/*"], "Content-Type: text/html\r\n", length), expected);
    }
    assert!(is_eligible(&[], "X-Compress: on\r\n", Some(1)));
    assert!(!is_eligible(&["*"], "X-Compress: off\r\nContent-Type: text/html\r\n", None));
    // What is no word of ours is ignored.
    assert!(is_eligible(&["*"], "x-compress: ?\r\nContent-Type: text/html\r\n", None));
}

#[test]
fn encoders_are_bounded() {
    let compression = compression(&["*"]);
    let mut lent = Vec::new();
    while let Some(encoder) = compression.encoder(ContentCoding::Gzip, Body::Stream) {
        lent.push(encoder);
        assert!(lent.len() < 1_000);
    }
    assert!(lent.len() > 50);
    assert!(compression.whole(ContentCoding::Gzip, &[b"body"]).is_none());
    lent.clear();
    let mut coded = Vec::new();
    let mut encoder = compression.encoder(ContentCoding::Gzip, Body::Stream).unwrap();
    encoder.encode(b"body", Flush::Finish, &mut coded).unwrap();
    assert_eq!(Some(coded), compression.whole(ContentCoding::Gzip, &[b"bo", b"", b"dy"]));
}
