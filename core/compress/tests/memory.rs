//! Memory of encoders that are in use at the same time, measured in processes of their own.

#![allow(missing_docs, clippy::unwrap_used)]

use std::process::Command;
use std::sync::Arc;

use poorhttp_codings::Encoders;
use poorhttp_compress::{Compression, Levels, MediaTypes};
use poorhttp_http::ContentCoding;
use poorhttp_interface::codings::{Body, Flush};

/// Names coding, level and body to a process that measures them.
const MEASURED: &str = "MEASURED";
const BODIES: [Body; 3] = [Body::Events, Body::Whole(10_000), Body::Stream];
/// KiB that all encoders together may use, and what the allocator may need beyond them.
const MOST: usize = (64 << 10) + (8 << 10);

/// KiB of memory that this process has allocated.
fn allocated() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// KiB of memory that as many encoders need as are lent at once.
fn measure(coding: ContentCoding, level: i32, body: Body) -> usize {
    let content = b"{\"id\": 12345, \"name\": \"entry\", \"tags\": [\"one\", \"two\"]}\n".repeat(200);
    let mut levels = Levels::default();
    levels.set(coding, level);
    let compression = Arc::new(Compression::new(vec![coding], MediaTypes::new([]), 0, levels, Arc::new(Encoders)));
    let before = allocated();
    let mut lent = Vec::new();
    while let Some(mut encoder) = compression.encoder(coding, body) {
        encoder.encode(&content[..10_000], Flush::Sync, &mut Vec::new()).unwrap();
        lent.push(encoder);
    }
    assert!(!lent.is_empty());
    allocated() - before
}

#[test]
fn encoders_need_no_more_than_they_may_use() {
    if let Ok(measured) = std::env::var(MEASURED) {
        let [coding, level, body] = measured.split(' ').map(|word| word.parse().unwrap()).collect::<Vec<i32>>()[..]
        else {
            return;
        };
        let (coding, body) = (ContentCoding::ALL[coding as usize], BODIES[body as usize]);
        let grown = measure(coding, level, body);
        assert!(grown <= MOST, "{coding:?} {level} {body:?}: {grown} KiB");
        return;
    }
    for (number, coding) in ContentCoding::ALL.into_iter().enumerate() {
        // With the highest that may be set.
        let levels = match coding {
            ContentCoding::Gzip => [1, 5, 9],
            ContentCoding::Brotli => [4, 5, 6],
            ContentCoding::Zstd => [1, 3, 9],
        };
        for (level, body) in levels.into_iter().flat_map(|level| (0..BODIES.len()).map(move |body| (level, body))) {
            let mut process = Command::new(std::env::current_exe().unwrap());
            process.env(MEASURED, format!("{number} {level} {body}"));
            let output = process.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
    }
}
