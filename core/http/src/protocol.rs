//! Protocol kinds: HTTP, FastCGI, SCGI or raw TCP on a connection, and the version of its responses.

/// A protocol of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 and HTTP/1.1 (RFC 9112).
    #[default]
    Http,
    /// uwsgi: a packet of variables, then the body.
    Uwsgi,
    /// SCGI: a netstring of variables, then the body.
    Scgi,
    /// FastCGI 1.0: records of variables and of the body.
    Fastcgi,
}

/// The form of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    /// The protocol of the request.
    pub protocol: Protocol,
    /// The FastCGI request number; 0 in other protocols.
    pub request: u16,
}

impl Protocol {
    /// The protocol with this name in an address; `None` if it is unknown.
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
