//! Limits of the protocol, each with its reason and the values of other servers.

use std::borrow::Cow;

use crate::reject::Reject;

/// Limits of one request. A request that exceeds one is refused with the status named beside it.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of the request line without its CRLF; 414. RFC 9112 section 3 asks for at least 8,000;
    /// nginx reads 8 KiB (`large_client_header_buffers`), gunicorn 4,094, waitress only the whole head.
    pub request_line: usize,
    /// Number of header fields, and of trailer fields; 431. gunicorn and Apache: 100.
    pub fields: usize,
    /// Bytes of one field line; 431. Holds a large session cookie; gunicorn and Apache: 8,190.
    pub field_line: usize,
    /// Bytes of the whole head, request line and empty line included; 431. An unauthenticated client can make the server store
    /// this much. waitress: 256 KiB, uvicorn: 64 KiB, nginx: 4 × 8 KiB, Node.js: 16 KiB. Some clients send more: Mercurial, 41 bytes
    /// for each head of a repository.
    pub head: usize,
    /// Bytes of a body after decoding; 413. gunicorn has none, waitress 1 GiB, nginx 1 MiB.
    pub body: u64,
    /// Bytes of a chunk-size line with its extensions, which are ignored (RFC 9112 section 7.1.1); 400.
    pub chunk_line: usize,
    /// Bytes of a trailer section; 431.
    pub trailers: usize,
}

impl Limits {
    /// The hard ceiling of [`Limits::fields`]: the parser keeps this many on the stack.
    pub const MAX_FIELDS: usize = 256;
    /// Bytes of a method; 501, as RFC 9112 section 3 asks for a method longer than any that is implemented. Which of the shorter
    /// ones are known, the application decides. The longest registered method has 17 bytes; gunicorn: 20.
    pub(crate) const MAX_METHOD: usize = 32;
    /// The hard ceiling of [`Limits::head`]: as many fields as the parser takes, each of 4 KiB. It also bounds the time to parse
    /// a head that comes line by line, as it is parsed again with each line.
    pub const MAX_HEAD: usize = 1 << 20;
    /// Bytes of a head up to which a connection keeps a copy, to recognize its repetitions.
    pub(crate) const REMEMBERED: usize = 64 << 10;

    /// The reason of a refusal for the log, with the limit that was exceeded and the option that sets it.
    pub fn explain(&self, reject: Reject) -> Cow<'static, str> {
        let bytes = |limit: usize| format!("{limit} bytes");
        let (limit, option) = match reject {
            Reject::METHOD_TOO_LONG => (bytes(Self::MAX_METHOD), ""),
            Reject::LINE_TOO_LONG => (bytes(self.request_line), ", max_request_line"),
            Reject::TOO_MANY_FIELDS => (format!("more than {}", self.fields), ", max_headers"),
            Reject::FIELD_TOO_LONG => (bytes(self.field_line), ", max_header_size"),
            Reject::HEAD_TOO_LONG | Reject::PACKET_TOO_LARGE => (bytes(self.head), ", max_request_header_size"),
            Reject::BODY_TOO_LARGE => (format!("{} bytes", self.body), ", max_body"),
            Reject::TRAILERS_TOO_LARGE => (bytes(self.trailers), ""),
            _ => return Cow::Borrowed(reject.reason),
        };
        Cow::Owned(format!("{}: {limit}{option}", reject.reason))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            request_line: 8 << 10,
            fields: 100,
            field_line: 16 << 10,
            head: 65_535,
            body: 1 << 30,
            chunk_line: 256,
            trailers: 8 << 10,
        }
    }
}
