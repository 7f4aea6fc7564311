//! Every limit of the protocol, each with its reason and its precedent.

/// What one request may cost. Exceeding a limit is answered with the status named beside it.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Octets of the request line without its CRLF; 414. RFC 9112 section 3 asks for at least 8,000;
    /// nginx reads 8 KiB (`large_client_header_buffers`), gunicorn 4,094, waitress only the whole head.
    pub request_line: usize,
    /// Number of header fields, and of trailer fields; 431. gunicorn and Apache: 100.
    pub fields: usize,
    /// Octets of one field line; 431. Holds a large session cookie; gunicorn and Apache: 8,190.
    pub field_line: usize,
    /// Octets of the whole head; 431. What an unauthenticated client can make us remember; waitress:
    /// 256 KiB, nginx: 4 × 8 KiB. Below 65,536, so that positions in a head fit 16 bits.
    pub head: usize,
    /// Octets of a body after decoding; 413. gunicorn has none, waitress 1 GiB, nginx 1 MiB.
    pub body: u64,
    /// Octets of a chunk-size line with its extensions; 400. Extensions are ignored (RFC 9112 section
    /// 7.1.1), and a long one is only ever an attack.
    pub chunk_line: usize,
    /// Octets of a trailer section; 431.
    pub trailers: usize,
}

impl Limits {
    /// The hard ceiling of [`Limits::fields`]: the parser keeps this many on the stack.
    pub const MOST_FIELDS: usize = 256;
    /// Octets of a method; 400. RFC 9110 has 501 for methods that a server does not know, but which ones are known is the
    /// application's business, and this is none: the longest that is registered has 17. gunicorn: 20.
    pub const MOST_METHOD: usize = 32;
    /// The hard ceiling of [`Limits::head`].
    pub const MOST_HEAD: usize = 65_535;
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            request_line: 8 << 10,
            fields: 100,
            field_line: 16 << 10,
            head: Self::MOST_HEAD,
            body: 1 << 30,
            chunk_line: 256,
            trailers: 8 << 10,
        }
    }
}
