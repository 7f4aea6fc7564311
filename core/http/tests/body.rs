//! Bodies: chunks, trailers, limits, and the buffer they pass through.

use poorhttp_http::{Event, Limits, ReadBuffer, RequestParser};

const POST: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A connection that receives at most `piece` bytes at once.
struct Receiver {
    parser: RequestParser,
    buffer: ReadBuffer,
    limits: Limits,
    piece: usize,
}

impl Receiver {
    fn new(limits: Limits, piece: usize) -> Self {
        Receiver { parser: RequestParser::default(), buffer: ReadBuffer::default(), limits, piece }
    }

    /// The body of the next message; `None`: it is incomplete. The bytes left in `bytes` were not received.
    fn body(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, u16> {
        let mut body = Vec::new();
        self.parser.next_message(&mut self.buffer);
        loop {
            match self.parser.poll(&mut self.buffer, &self.limits) {
                Event::Head => {}
                Event::ManagementReply(_) => unreachable!("HTTP has none"),
                Event::Content(content) => body.extend_from_slice(content),
                Event::Complete => return Ok(Some(body)),
                Event::Rejected(reject) => return Err(reject.status),
                Event::NeedMore if bytes.is_empty() => return Ok(None),
                Event::NeedMore => {
                    let room = self.buffer.room(self.parser.expected());
                    let taken = room.len().min(bytes.len()).min(self.piece);
                    room[..taken].copy_from_slice(&bytes[..taken]);
                    self.buffer.received(taken);
                    *bytes = &bytes[taken..];
                }
            }
        }
    }
}

/// A stream of HTTP/2 whose head announces so much content.
fn stream(announced: &str, limits: &Limits) -> Receiver {
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{announced}\r\n");
    let mut parsed = Receiver::new(Limits::default(), usize::MAX);
    let _ = parsed.body(&mut head.as_bytes());
    let buffer = ReadBuffer::with_head(parsed.buffer.head.clone(), head.into_bytes());
    Receiver { parser: RequestParser::of_stream(true), buffer, limits: limits.clone(), piece: usize::MAX }
}

#[test]
fn content_without_framing_counts_however_it_is_received() {
    let limits = Limits { body: 10, ..Limits::default() };
    let mut announced = stream("Content-Length: 9\r\n", &limits);
    assert_eq!((announced.body(&mut &b""[..]), announced.parser.expected()), (Ok(None), 9));
    announced.parser.take_content(4);
    assert_eq!(announced.parser.expected(), 5);
    let mut unknown = stream("", &limits);
    assert_eq!((unknown.body(&mut &b""[..]), unknown.parser.expected()), (Ok(None), 0));
    unknown.parser.take_content(6);
    assert!(!unknown.parser.has_whole_body(&unknown.buffer, &limits));
    let room = unknown.buffer.room(0);
    room[..5].copy_from_slice(b"12345");
    unknown.buffer.received(4);
    assert!(matches!(unknown.parser.poll(&mut unknown.buffer, &limits), Event::Content(b"1234")));
    assert!(
        unknown.parser.end_content() && matches!(unknown.parser.poll(&mut unknown.buffer, &limits), Event::Complete)
    );
    assert!(!unknown.parser.end_content());
    let mut long = stream("", &limits);
    assert_eq!(long.body(&mut &b"1234567890"[..]), Ok(None));
    assert_eq!(stream("", &limits).body(&mut &b"12345678901"[..]), Err(413));
}

/// The body after a chunked head; it must be the same however the bytes are split.
fn chunked_within(chunks: &str, limits: &Limits) -> Result<Option<Vec<u8>>, u16> {
    let text = format!("{POST}{chunks}");
    let decode = |piece| Receiver::new(limits.clone(), piece).body(&mut text.as_bytes());
    let whole = decode(usize::MAX);
    for piece in [1, 2, 3, 7] {
        assert_eq!(decode(piece), whole, "{piece} bytes at once: {chunks:?}");
    }
    whole
}

fn chunked(chunks: &str) -> Result<Option<Vec<u8>>, u16> {
    chunked_within(chunks, &Limits::default())
}

fn text(text: &str) -> Result<Option<Vec<u8>>, u16> {
    Ok(Some(text.as_bytes().to_vec()))
}

#[test]
fn chunks_become_a_body() {
    assert_eq!(chunked("5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n"), text("hello world"));
    assert_eq!(chunked("0\r\n\r\n"), text(""));
    assert_eq!(chunked("000\r\n\r\n"), text(""));
    assert_eq!(chunked("00000000000000a\r\n0123456789\r\n0;x=\"y z\"\r\n\r\n"), text("0123456789"));
    assert_eq!(chunked("aF\r\n"), Ok(None));
}

#[test]
fn a_body_is_incomplete_before_its_last_byte() {
    let whole = "5\r\nhello\r\n0\r\nX-A: b\r\n\r\n";
    for end in 0..whole.len() {
        assert_eq!(chunked(&whole[..end]), Ok(None), "{:?}", &whole[..end]);
    }
    assert_eq!(chunked(whole), text("hello"));
}

#[test]
fn malformed_chunks_are_refused() {
    for bad in [
        "\r\n",
        "g\r\n",
        "-1\r\n",
        "+1\r\n",
        " 1\r\n",
        "1 \r\n",
        "\t1\r\n",
        "0x1\r\n",
        "1\n",
        "1\rx",
        ";\r\n",
        "1;\n",
        "1;a\x01b\r\n",
        "1;a\rb\r\n",
        "1\r\nab",
        "1\r\na\n",
        "1\r\na\rb",
        "11111111111111111",
        "1_0\r\n",
        "1,\r\n",
    ] {
        assert_eq!(chunked(bad), Err(400), "{bad:?}");
    }
}

#[test]
fn sizes_have_at_most_sixteen_digits() {
    assert_eq!(chunked("0000000000000001\r\na\r\n0\r\n\r\n"), text("a"));
    assert_eq!(chunked("00000000000000001"), Err(400));
    assert_eq!(chunked("ffffffffffffffff\r\n"), Err(413));
    let endless = Limits { body: u64::MAX, ..Limits::default() };
    assert_eq!(chunked_within("ffffffffffffffff\r\na", &endless), Ok(None));
    assert_eq!(chunked_within("1\r\na\r\nffffffffffffffff\r\n", &endless), Err(413));
}

#[test]
fn the_limit_of_a_body_is_that_of_all_chunks() {
    let limits = Limits { body: 10, ..Limits::default() };
    assert_eq!(chunked_within("a\r\n0123456789\r\n0\r\n\r\n", &limits), text("0123456789"));
    assert_eq!(chunked_within("5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n", &limits), text("0123456789"));
    assert_eq!(chunked_within("b\r\n", &limits), Err(413));
    assert_eq!(chunked_within("5\r\n01234\r\n5\r\n56789\r\n1\r\n", &limits), Err(413));
}

#[test]
fn the_limit_of_an_extension() {
    let limits = Limits { chunk_line: 8, ..Limits::default() };
    assert_eq!(chunked_within("0;2345678\r\n\r\n", &limits), text(""));
    assert_eq!(chunked_within("0;23456789", &limits), Err(400));
}

/// Too much white space after a size is refused for that reason, whatever follows it.
#[test]
fn white_space_counts_as_an_extension() {
    for (spaces, reason) in [(8, "a malformed chunk size"), (9, "a chunk extension over the limit")] {
        let limits = Limits { chunk_line: 8, ..Limits::default() };
        let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
        let text = format!("{POST}0{}x", " ".repeat(spaces));
        buffer.room(0)[..text.len()].copy_from_slice(text.as_bytes());
        buffer.received(text.len());
        assert_eq!(parser.poll(&mut buffer, &limits), Event::Head);
        let event = parser.poll(&mut buffer, &limits);
        assert!(matches!(event, Event::Rejected(reject) if reject.reason == reason), "{spaces}: {event:?}");
    }
}

#[test]
fn trailers_are_checked_and_dropped() {
    assert_eq!(chunked("0\r\nX-A: b\r\nX-B:\r\n\r\n"), text(""));
    for bad in
        ["X-A\r\n", "X-A : b\r\n", ": b\r\n", " X-A: b\r\n", "X-A: b\n", "X-A: b\x00\r\n", "\n", "X\u{e9}: b\r\n"]
    {
        assert_eq!(chunked(&format!("0\r\n{bad}\r\n")), Err(400), "{bad:?}");
    }
    for forbidden in [
        "Transfer-Encoding",
        "content-length",
        "HOST",
        "Connection",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Authorization",
        "Proxy-Authorization",
        "Cookie",
        "Content-Encoding",
        "Content-Type",
        "Content-Range",
        "Range",
        "Cache-Control",
        "Max-Forwards",
    ] {
        assert_eq!(chunked(&format!("0\r\n{forbidden}: 1\r\n\r\n")), Err(400), "{forbidden}");
        assert_eq!(chunked(&format!("0\r\nX-{forbidden}: 1\r\n\r\n")), text(""), "X-{forbidden}");
    }
}

#[test]
fn the_limits_of_trailers() {
    let limits = Limits { trailers: 20, fields: 3, ..Limits::default() };
    let trailers = |lines: &[&str]| chunked_within(&format!("0\r\n{}\r\n\r\n", lines.join("\r\n")), &limits);
    assert_eq!(trailers(&["X: 4567890", "X: 4567890"]), text(""));
    assert_eq!(trailers(&["X: 4567890", "X: 45678901"]), Err(431));
    assert_eq!(trailers(&["X: 456789012345678901"]), Err(431));
    assert_eq!(chunked_within("0\r\nX: 456789012345678901", &limits), Err(431));
    assert_eq!(trailers(&["X:", "X:", "X:"]), text(""));
    assert_eq!(trailers(&["X:", "X:", "X:", "X:"]), Err(431));
}

#[test]
fn a_body_many_times_the_buffer_leaves_the_head_alone() {
    const LENGTH: usize = 1 << 20;
    let content: Vec<u8> = (0..=250).cycle().take(LENGTH).collect();
    let head = format!("PUT /x HTTP/1.1\r\nHost: a\r\nX-A: b\r\nContent-Length: {LENGTH}\r\n\r\n");
    for piece in [999, 8 << 10, 100_000] {
        let mut receiver = Receiver::new(Limits::default(), piece);
        // The buffer also holds messages before and after this one, so that the head does not begin at its front.
        let bytes =
            [b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", head.as_bytes(), &content, b"GET /y HTTP/1.1\r\nHost: a\r\n\r\n"]
                .concat();
        let mut rest = &bytes[..];
        assert_eq!(receiver.body(&mut rest), text(""));
        assert!(receiver.body(&mut rest) == Ok(Some(content.clone())));
        assert_eq!(receiver.buffer.head_bytes(), head.as_bytes());
        assert_eq!(receiver.buffer.head.fields[1].value.of(receiver.buffer.head_bytes()), b"b");
        assert!(receiver.buffer.capacity() <= 2 * ReadBuffer::MAX_ROOM, "{} bytes held", receiver.buffer.capacity());
        assert_eq!(receiver.body(&mut rest), text(""));
        assert_eq!(receiver.buffer.head.target.of(receiver.buffer.head_bytes()), b"/y");
        assert!(receiver.buffer.is_drained());
    }
}

#[test]
fn pipelined_messages_are_separated() {
    let one = format!("{POST}3\r\nabc\r\n0\r\n\r\n");
    let two = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nde\n";
    let three = "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let bytes = [&one, two, three].concat().repeat(50);
    for piece in [1, 13, usize::MAX] {
        let mut receiver = Receiver::new(Limits::default(), piece);
        let mut rest = bytes.as_bytes();
        for _ in 0..50 {
            assert_eq!(receiver.body(&mut rest), text("abc"));
            assert_eq!(receiver.body(&mut rest), text("de\n"));
            assert_eq!(receiver.body(&mut rest), text(""));
        }
        assert_eq!(receiver.body(&mut rest), Ok(None));
        assert!(receiver.buffer.is_drained());
    }
}

#[test]
fn missing_bytes_are_known() {
    let mut receiver = Receiver::new(Limits::default(), usize::MAX);
    assert!(!receiver.parser.is_in_body() && !receiver.parser.is_mid_message(None));
    let mut rest = &b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhello"[..];
    assert_eq!(receiver.body(&mut rest), Ok(None));
    assert!(receiver.parser.is_in_body() && receiver.parser.is_mid_message(Some(&receiver.buffer)));
    assert_eq!(receiver.parser.expected(), 4);
    // The current message needs its buffer, even if all bytes in it are parsed.
    assert!(receiver.buffer.is_drained() && receiver.buffer.is_in_use());
}

/// Framing that is cut by the end of the buffer moves to its front together with the head of the message.
#[test]
fn small_chunks_leave_the_head_alone() {
    let content = "0123456789".repeat(5_000);
    let chunks: String =
        content.as_bytes().chunks(3).map(|chunk| format!("{}\r\n{}\r\n", chunk.len(), text_of(chunk))).collect();
    let bytes = format!("GET / HTTP/1.1\r\nHost: a\r\n\r\n{POST}{chunks}0\r\n\r\n");
    for piece in [1_000, usize::MAX] {
        let mut receiver = Receiver::new(Limits::default(), piece);
        let mut rest = bytes.as_bytes();
        assert_eq!(receiver.body(&mut rest), text(""));
        assert!(receiver.body(&mut rest) == text(&content));
        assert_eq!(receiver.buffer.head_bytes(), POST.as_bytes());
    }
}

fn text_of(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
