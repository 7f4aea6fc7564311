//! What is spoken on a connection.

/// A protocol in which requests come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 and HTTP/1.1 (RFC 9112).
    #[default]
    Http,
    /// uWSGI's: a packet of variables, and the body behind it.
    Uwsgi,
    /// The simple common gateway interface: the same in a netstring.
    Scgi,
    /// FastCGI 1.0: the same in records.
    Fastcgi,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    /// In which the request came.
    pub protocol: Protocol,
    /// The number that a web server has given it; 0 where there are none.
    pub request: u16,
}

impl Protocol {
    /// Its name in an address; `None` if that is unknown.
    pub fn named(name: &str) -> Option<Protocol> {
        match name {
            "http" => Some(Protocol::Http),
            "uwsgi" => Some(Protocol::Uwsgi),
            "scgi" => Some(Protocol::Scgi),
            "fastcgi" => Some(Protocol::Fastcgi),
            _ => None,
        }
    }
}
