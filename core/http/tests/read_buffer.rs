//! The receive buffer: its capacity, when it grows or shrinks; the head of a request in it stays intact.

use poorhttp_http::{Event, Limits, ReadBuffer, RequestParser};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn receive(buffer: &mut ReadBuffer, bytes: &[u8], wanted: u64) {
    buffer.room(wanted)[..bytes.len()].copy_from_slice(bytes);
    buffer.received(bytes.len());
}

/// A head of this length for a body of this length.
fn post(body: usize, length: usize) -> Vec<u8> {
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {body}\r\nX: \r\n\r\n");
    head.replace("X: ", &format!("X: {}", "v".repeat(length - head.len()))).into_bytes()
}

/// Parses all received bytes.
fn read(parser: &mut RequestParser, buffer: &mut ReadBuffer) {
    loop {
        match parser.poll(buffer, &Limits::default()) {
            Event::NeedMore | Event::Complete => return,
            Event::Rejected(reject) => panic!("{reject:?}"),
            _ => {}
        }
    }
}

#[test]
fn the_buffer_grows_to_the_wanted_size() {
    for (wanted, room) in
        [(0, ReadBuffer::ROOM), (10_000, 10_000), (65_537, ReadBuffer::MAX_ROOM), (u64::MAX, ReadBuffer::MAX_ROOM)]
    {
        let mut buffer = ReadBuffer::default();
        assert_eq!(buffer.capacity(), 0);
        assert_eq!((buffer.room(wanted).len(), buffer.capacity()), (room, room));
    }
    // The capacity doubles, so that bytes are moved only a few times.
    let mut buffer = ReadBuffer::default();
    for times in [1, 1, 2, 4] {
        let room = buffer.room(0).len();
        assert_eq!(room, times * ReadBuffer::ROOM);
        buffer.received(room);
    }
    assert_eq!((buffer.capacity(), buffer.unread().len()), (8 * ReadBuffer::ROOM, 8 * ReadBuffer::ROOM));
    assert_eq!(buffer.room(u64::MAX).len(), ReadBuffer::MAX_ROOM);
}

/// A buffer that is filled by a part of a large body grows, although all bytes in it are parsed.
#[test]
fn a_buffer_that_is_filled_grows() {
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    let mut bytes = post(100_000, 100);
    bytes.resize(ReadBuffer::ROOM, b'v');
    receive(&mut buffer, &bytes, 0);
    read(&mut parser, &mut buffer);
    assert_eq!(buffer.room(ReadBuffer::MAX_ROOM as u64).len(), ReadBuffer::MAX_ROOM);
    assert_eq!(buffer.capacity(), 100 + ReadBuffer::MAX_ROOM);
}

#[test]
fn no_more_is_received_than_there_is_room() {
    let mut buffer = ReadBuffer::default();
    buffer.room(0);
    buffer.received(ReadBuffer::ROOM + 1);
    assert_eq!(buffer.unread().len(), ReadBuffer::ROOM);
}

/// Answered messages are removed from the buffer before it grows.
#[test]
fn a_full_buffer_is_compacted_first() {
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    let requests = GET.repeat(2 * ReadBuffer::ROOM / GET.len());
    let mut sent = 0;
    let mut received = 0;
    while received < requests.len() {
        // The last request is cut by the end of the buffer.
        let room = buffer.room(0).len().min(requests.len() - received);
        assert!(room > 0);
        receive(&mut buffer, &requests[received..received + room], 0);
        received += room;
        while parser.poll(&mut buffer, &Limits::default()) == Event::Head {
            assert_eq!(buffer.head_bytes(), GET);
            parser.next_message(&mut buffer);
            sent += 1;
        }
        assert_eq!(buffer.capacity(), ReadBuffer::ROOM);
    }
    assert_eq!((sent, buffer.is_drained()), (requests.len() / GET.len(), true));
}

/// The head of a message is needed while its body is read.
#[test]
fn parsed_content_is_overwritten() {
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    let head = post(100_000, 5_000);
    receive(&mut buffer, &[GET, &head].concat(), 0);
    read(&mut parser, &mut buffer);
    parser.next_message(&mut buffer);
    let mut sent = 0;
    while sent < 100_000 {
        let piece = buffer.room(0).len().min(100_000 - sent);
        assert!(piece > 0);
        receive(&mut buffer, &b"v".repeat(piece), 0);
        read(&mut parser, &mut buffer);
        assert_eq!(buffer.head_bytes(), head);
        assert_eq!(
            (buffer.room(0).len(), buffer.capacity()),
            (ReadBuffer::ROOM - GET.len() - head.len(), ReadBuffer::ROOM)
        );
        sent += piece;
    }
    assert_eq!(parser.poll(&mut buffer, &Limits::default()), Event::Complete);
}

#[test]
fn room_for_a_body_is_given_back() {
    for (before, head, room, after) in [
        (&b""[..], 100, 2 * ReadBuffer::ROOM, 2 * ReadBuffer::ROOM),
        (b"", 100, 2 * ReadBuffer::ROOM + 1, ReadBuffer::ROOM),
        (b"", 10_000, 40_000, 10_000),
        (GET, 10_000, 40_000, GET.len() + 10_000),
        (GET, ReadBuffer::ROOM - GET.len(), 40_000, ReadBuffer::ROOM),
    ] {
        let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
        let bytes = [before, &post(100_000, head)].concat();
        receive(&mut buffer, &bytes, room as u64);
        read(&mut parser, &mut buffer);
        if !before.is_empty() {
            parser.next_message(&mut buffer);
            read(&mut parser, &mut buffer);
        }
        receive(&mut buffer, b"more", 0);
        buffer.shrink();
        assert_eq!((buffer.capacity(), buffer.unread()), (room, &b"more"[..]), "a byte was not parsed");
        read(&mut parser, &mut buffer);
        buffer.shrink();
        assert_eq!((buffer.capacity(), buffer.is_drained()), (after, true));
        assert_eq!(buffer.head_bytes(), post(100_000, head));
        // The rest of the body is received after the head.
        let mut missing = 99_996;
        while missing > 0 {
            let piece = buffer.room(missing as u64).len().min(missing);
            assert!(piece > 0);
            let content = b"w".repeat(piece);
            receive(&mut buffer, &content, 0);
            assert_eq!(parser.poll(&mut buffer, &Limits::default()), Event::Content(&content));
            assert_eq!(buffer.head_bytes(), post(100_000, head));
            missing -= piece;
        }
        assert_eq!(parser.poll(&mut buffer, &Limits::default()), Event::Complete);
    }
}

#[test]
fn a_buffer_is_in_use_until_its_message_is_answered() {
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    assert!(!buffer.is_in_use());
    receive(&mut buffer, b"G", 0);
    assert!(buffer.is_in_use() && !buffer.is_drained());
    receive(&mut buffer, &GET[1..], 0);
    read(&mut parser, &mut buffer);
    assert!(buffer.is_in_use() && buffer.is_drained());
    parser.next_message(&mut buffer);
    assert!(!buffer.is_in_use());
    receive(&mut buffer, GET, 0);
    read(&mut parser, &mut buffer);
    buffer.clear();
    assert!(!buffer.is_in_use() && buffer.head_bytes().is_empty());
}

/// Content that is received elsewhere is counted.
#[test]
fn content_may_be_received_elsewhere() {
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    receive(&mut buffer, &post(10, 100), 0);
    read(&mut parser, &mut buffer);
    assert_eq!(parser.expected(), 10);
    parser.take_content(4);
    assert_eq!((parser.expected(), parser.is_in_body()), (6, true));
    parser.take_content(6);
    assert_eq!(parser.expected(), 0);
    assert_eq!(parser.poll(&mut buffer, &Limits::default()), Event::Complete);
    parser.take_content(1);
    assert_eq!(parser.poll(&mut buffer, &Limits::default()), Event::Complete);
}
