//! Limits of the protocol, each with its reason and the values of other servers.

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
    /// Bytes of the whole head; 431. An unauthenticated client can make the server store this much; waitress: 256 KiB,
    /// nginx: 4 × 8 KiB. Below 65,536, so that positions in a head fit 16 bits.
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
    /// Bytes of a method; 400. RFC 9110 has 501 for unknown methods, but the application decides which are known. The
    /// longest registered method has 17 bytes; gunicorn: 20.
    pub(crate) const MAX_METHOD: usize = 32;
    /// The hard ceiling of [`Limits::head`].
    pub const MAX_HEAD: usize = 65_535;
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            request_line: 8 << 10,
            fields: 100,
            field_line: 16 << 10,
            head: Self::MAX_HEAD,
            body: 1 << 30,
            chunk_line: 256,
            trailers: 8 << 10,
        }
    }
}
