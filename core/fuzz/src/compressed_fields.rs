//! Fuzz target `compressed_fields`: header fields of responses that may be compressed.

use std::sync::Arc;

use poorhttp_codings::Encoders;
use poorhttp_compress::{Compression, Levels, MediaTypes};
use poorhttp_http::{ConditionalFields, ContentCoding};

use crate::receiver::receive;

/// Decides whether a response with these field lines is compressed, and changes them.
pub fn compressed_fields(block: &[u8]) {
    // What the response writer lets pass.
    let lines: Vec<&[u8]> = block.split(|&byte| byte == b'\n').filter(|line| line.contains(&b':')).collect();
    if lines.iter().any(|line| line.iter().any(|&byte| byte < b' ' || byte == 0x7f) || line.starts_with(b" ")) {
        return;
    }
    let block: Vec<u8> = lines.iter().flat_map(|line| [line, &b"\r\n"[..]].concat()).collect();
    let request = receive([&b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"[..]]);
    let message = &request.messages[0];
    let asked = ConditionalFields::of(&message.head, &message.bytes);
    let types = MediaTypes::new(["text/*".to_owned(), "+json".to_owned()]);
    let codings = vec![ContentCoding::Gzip];
    let compression = Arc::new(Compression::new(codings, types, 10, Levels::default(), Arc::new(Encoders)));
    let choice = compression.choose(200, &block, Some(100), &asked);
    let changed = compression.fields(&block, choice).unwrap_or_else(|| block.clone());
    let named = |block: &[u8], name: &str| -> Vec<Vec<u8>> {
        let is_named = |line: &&[u8]| line.to_ascii_lowercase().starts_with(name.as_bytes());
        block.split(|&byte| byte == b'\n').filter(is_named).map(<[u8]>::to_vec).collect()
    };
    // It is not sent to the client.
    assert!(named(&changed, "x-compress:").is_empty());
    if choice.is_none() {
        return assert!(changed.len() == block.len() || !named(&block, "x-compress:").is_empty());
    }
    // It has one coding, no length, and caches know what it depends on.
    assert_eq!(named(&changed, "content-encoding:"), [b"Content-Encoding: gzip\r"]);
    assert!(named(&changed, "content-length:").is_empty());
    let vary = named(&changed, "vary:").concat().to_ascii_lowercase();
    let has = |word: &[u8]| vary.windows(word.len()).any(|window| window == word);
    assert!(has(b"accept-encoding") || has(b"*"));
    // No tag is strong, and no field is invented.
    assert!(
        named(&changed, "etag:").iter().all(|line| line.windows(3).any(|window| window == b"W/\"" || window == b": W"))
    );
    assert!(changed.len() <= block.len() + 80);
}
