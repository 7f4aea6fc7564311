//! Data of an access-log line, kept from the end of a response until its last byte is sent.

use std::net::IpAddr;

use poorhttp_http::Head;

use crate::log::request_id::RequestName;

/// What is not known any more when a response has been sent, if a format asks for it (see [`crate::log::format::Wanted`]), or if a
/// request has it and most have not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collected {
    /// Values of response fields; an empty one: the response has none.
    pub(crate) fields: Vec<Vec<u8>>,
    /// Values of variables of the environ, as Latin-1.
    pub(crate) variables: Vec<Vec<u8>>,
    /// Name and port of the server for the client of this request.
    pub(crate) server: (Vec<u8>, Vec<u8>),
    /// Bytes of the body that the application has got.
    pub(crate) body: u64,
    /// Bytes of content before it was compressed; 0: it was not.
    pub(crate) uncoded: u64,
    /// Name of a request whose head is not logged, because it was refused.
    pub(crate) name: Option<RequestName>,
}

impl Collected {
    /// Takes the values of response fields from status line and fields; those of a repeated one with a comma between them.
    #[cold]
    pub(crate) fn take_fields(&mut self, names: &[String], lines: &[u8]) {
        self.fields = names.iter().map(|name| values(lines, name.as_bytes()).join(&b", "[..])).collect();
    }
}

/// The values of a field in the lines of a head.
fn values<'a>(lines: &'a [u8], name: &[u8]) -> Vec<&'a [u8]> {
    let lines = lines.split(|&byte| byte == b'\n');
    lines
        .filter_map(|line| {
            let (begin, rest) = line.split_at_checked(name.len())?;
            let value = rest.strip_prefix(b":")?;
            begin.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
        })
        .collect()
}

/// An answer that is complete or given up, perhaps not sent yet. Positions count the bytes of its connection.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) client: Option<IpAddr>,
    /// Its request could not be understood, or it is a connection that was not read.
    pub(crate) has_no_head: bool,
    pub(crate) status: u16,
    /// Bytes of its content.
    pub(crate) size: u64,
    /// Where it begins.
    pub(crate) start: u64,
    /// Where its head ends.
    pub(crate) body: u64,
    /// Where it ends.
    pub(crate) end: u64,
    /// It has been made as a whole.
    pub(crate) is_whole: bool,
    pub(crate) persists: bool,
    /// When its request was there, of [`crate::log::access::AccessLog::start`].
    pub(crate) started: u64,
    pub(crate) number: u64,
    pub(crate) kept: u32,
    /// Bytes of the request: head and content.
    pub(crate) received: u64,
    /// A trusted proxy has sent the request.
    pub(crate) is_trusted: bool,
    pub(crate) collected: Option<Box<Collected>>,
}

/// The same, with the head of its request, which its connection does not have any more.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub(crate) answer: Answer,
    pub(crate) head: Option<(Head, Vec<u8>)>,
}

/// What the access log says of a request, whatever its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) client: Option<IpAddr>,
    pub(crate) number: u64,
    /// When it was there, of [`crate::log::access::AccessLog::start`].
    pub(crate) started: u64,
    pub(crate) kept: u32,
    /// Bytes: head and content.
    pub(crate) received: u64,
    /// A trusted proxy has sent it.
    pub(crate) is_trusted: bool,
}

impl Answer {
    /// An answer of which nothing was made yet.
    #[inline(always)]
    pub(crate) fn new(asked: Asked, status: u16) -> Self {
        let Asked { client, number, started, kept, received, is_trusted } = asked;
        Answer {
            client,
            has_no_head: false,
            status,
            size: 0,
            start: 0,
            body: 0,
            end: 0,
            is_whole: false,
            persists: false,
            started,
            number,
            kept,
            received,
            is_trusted,
            collected: None,
        }
    }

    /// Bytes of content and of all when the kernel has taken all bytes before `position`. Of the framing of a body that
    /// was cut off, each byte of content has the same share.
    pub(crate) fn sent(&self, position: u64) -> (u64, u64) {
        let sent = position.min(self.end).saturating_sub(self.start);
        let head = self.body.saturating_sub(self.start);
        let framed = self.end.saturating_sub(self.start + head);
        let size = match sent.saturating_sub(head) {
            all if all == framed => self.size,
            part => (u128::from(self.size) * u128::from(part) / u128::from(framed)) as u64,
        };
        (size, sent)
    }

    /// Whether all of it stands before `position`.
    pub(crate) fn is_before(&self, position: u64) -> bool {
        position >= self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_fields() {
        let lines = b"HTTP/1.1 200 OK\r\nX-One: a\r\nx-two:  b c \r\nX-One: d\r\n\r\n";
        let names = ["x-one", "X-Two", "X-T", "HTTP/1.1 200 OK"].map(str::to_owned);
        let mut collected = Collected::default();
        collected.take_fields(&names, lines);
        assert_eq!(collected.fields, [&b"a, d"[..], b"b c", b"", b""]);
    }

    #[test]
    fn bytes_sent_of_a_cut_off_response() {
        let asked = Asked { client: None, number: 1, started: 0, kept: 0, received: 0, is_trusted: false };
        // A thousand chunks of one byte.
        let (start, body, end) = (500, 600, 600 + 6_000);
        let answer =
            Answer { size: 1_000, start, body, end, is_whole: true, persists: true, ..Answer::new(asked, 200) };
        for (position, size, sent) in
            [(400, 0, 0), (550, 0, 50), (600, 0, 100), (3_600, 500, 3_100), (9_999, 1_000, 6_100)]
        {
            assert_eq!(answer.sent(position), (size, sent), "{position}");
        }
        let head_only = Answer { end: 600, size: 0, ..answer };
        assert_eq!(head_only.sent(600), (0, 100));
    }
}
