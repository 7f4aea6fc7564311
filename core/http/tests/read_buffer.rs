//! The receive buffer: how much room it has, when it grows or shrinks, and that its head stays as it is.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use poorhttp_http::{Event, Inbound, Intake, Limits};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn receive(intake: &mut Intake, bytes: &[u8], wanted: u64) {
    intake.room(wanted)[..bytes.len()].copy_from_slice(bytes);
    intake.received(bytes.len());
}

/// The head of a request with a body of this length, itself this long.
fn post(body: usize, length: usize) -> Vec<u8> {
    let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {body}\r\nX: \r\n\r\n");
    head.replace("X: ", &format!("X: {}", "v".repeat(length - head.len()))).into_bytes()
}

/// Looks at all that was received.
fn read(inbound: &mut Inbound, intake: &mut Intake) {
    loop {
        match inbound.poll(intake, &Limits::default()) {
            Event::NeedMore | Event::Complete => return,
            Event::Rejected(reject) => panic!("{reject:?}"),
            _ => {}
        }
    }
}

#[test]
fn room_is_made_as_it_is_wanted() {
    for (wanted, room) in
        [(0, Intake::ROOM), (10_000, 10_000), (65_537, Intake::MOST_ROOM), (u64::MAX, Intake::MOST_ROOM)]
    {
        let mut intake = Intake::default();
        assert_eq!(intake.capacity(), 0);
        assert_eq!((intake.room(wanted).len(), intake.capacity()), (room, room));
    }
    // It doubles, so that bytes are moved only a few times.
    let mut intake = Intake::default();
    for times in [1, 1, 2, 4] {
        let room = intake.room(0).len();
        assert_eq!(room, times * Intake::ROOM);
        intake.received(room);
    }
    assert_eq!((intake.capacity(), intake.unread().len()), (8 * Intake::ROOM, 8 * Intake::ROOM));
    assert_eq!(intake.room(u64::MAX).len(), Intake::MOST_ROOM);
}

/// A buffer that a part of a large body has filled grows, although all in it was looked at.
#[test]
fn a_buffer_that_is_filled_grows() {
    let (mut inbound, mut intake) = (Inbound::default(), Intake::default());
    let mut octets = post(100_000, 100);
    octets.resize(Intake::ROOM, b'v');
    receive(&mut intake, &octets, 0);
    read(&mut inbound, &mut intake);
    assert_eq!(intake.room(Intake::MOST_ROOM as u64).len(), Intake::MOST_ROOM);
    assert_eq!(intake.capacity(), 100 + Intake::MOST_ROOM);
}

#[test]
fn no_more_is_received_than_there_is_room() {
    let mut intake = Intake::default();
    intake.room(0);
    intake.received(Intake::ROOM + 1);
    assert_eq!(intake.unread().len(), Intake::ROOM);
}

/// Before the buffer grows, messages that were answered are removed from it.
#[test]
fn a_full_buffer_is_compacted_first() {
    let (mut inbound, mut intake) = (Inbound::default(), Intake::default());
    let requests = GET.repeat(2 * Intake::ROOM / GET.len());
    let mut sent = 0;
    let mut received = 0;
    while received < requests.len() {
        // What does not fit is cut somewhere.
        let room = intake.room(0).len().min(requests.len() - received);
        assert!(room > 0);
        receive(&mut intake, &requests[received..received + room], 0);
        received += room;
        while inbound.poll(&mut intake, &Limits::default()) == Event::Head {
            assert_eq!(intake.head_bytes(), GET);
            inbound.next_message(&mut intake);
            sent += 1;
        }
        assert_eq!(intake.capacity(), Intake::ROOM);
    }
    assert_eq!((sent, intake.is_drained()), (requests.len() / GET.len(), true));
}

/// The head of a message is needed while its body is read.
#[test]
fn content_that_was_read_is_written_over() {
    let (mut inbound, mut intake) = (Inbound::default(), Intake::default());
    let head = post(100_000, 5_000);
    receive(&mut intake, &[GET, &head].concat(), 0);
    read(&mut inbound, &mut intake);
    inbound.next_message(&mut intake);
    let mut sent = 0;
    while sent < 100_000 {
        let piece = intake.room(0).len().min(100_000 - sent);
        assert!(piece > 0);
        receive(&mut intake, &b"v".repeat(piece), 0);
        read(&mut inbound, &mut intake);
        assert_eq!(intake.head_bytes(), head);
        assert_eq!((intake.room(0).len(), intake.capacity()), (Intake::ROOM - GET.len() - head.len(), Intake::ROOM));
        sent += piece;
    }
    assert_eq!(inbound.poll(&mut intake, &Limits::default()), Event::Complete);
}

#[test]
fn room_for_a_body_is_given_back() {
    for (before, head, room, after) in [
        (&b""[..], 100, 2 * Intake::ROOM, 2 * Intake::ROOM),
        (b"", 100, 2 * Intake::ROOM + 1, Intake::ROOM),
        (b"", 10_000, 40_000, 10_000),
        (GET, 10_000, 40_000, GET.len() + 10_000),
        (GET, Intake::ROOM - GET.len(), 40_000, Intake::ROOM),
    ] {
        let (mut inbound, mut intake) = (Inbound::default(), Intake::default());
        let octets = [before, &post(100_000, head)].concat();
        receive(&mut intake, &octets, room as u64);
        read(&mut inbound, &mut intake);
        if !before.is_empty() {
            inbound.next_message(&mut intake);
            read(&mut inbound, &mut intake);
        }
        receive(&mut intake, b"more", 0);
        intake.shrink();
        assert_eq!((intake.capacity(), intake.unread()), (room, &b"more"[..]), "something was not looked at");
        read(&mut inbound, &mut intake);
        intake.shrink();
        assert_eq!((intake.capacity(), intake.is_drained()), (after, true));
        assert_eq!(intake.head_bytes(), post(100_000, head));
        // The rest of the body is received behind the head.
        let mut missing = 99_996;
        while missing > 0 {
            let piece = intake.room(missing as u64).len().min(missing);
            assert!(piece > 0);
            let content = b"w".repeat(piece);
            receive(&mut intake, &content, 0);
            assert_eq!(inbound.poll(&mut intake, &Limits::default()), Event::Content(&content));
            assert_eq!(intake.head_bytes(), post(100_000, head));
            missing -= piece;
        }
        assert_eq!(inbound.poll(&mut intake, &Limits::default()), Event::Complete);
    }
}

#[test]
fn a_buffer_is_in_use_until_its_message_is_answered() {
    let (mut inbound, mut intake) = (Inbound::default(), Intake::default());
    assert!(!intake.is_in_use());
    receive(&mut intake, b"G", 0);
    assert!(intake.is_in_use() && !intake.is_drained());
    receive(&mut intake, &GET[1..], 0);
    read(&mut inbound, &mut intake);
    assert!(intake.is_in_use() && intake.is_drained());
    inbound.next_message(&mut intake);
    assert!(!intake.is_in_use());
    receive(&mut intake, GET, 0);
    read(&mut inbound, &mut intake);
    intake.clear();
    assert!(!intake.is_in_use() && intake.head_bytes().is_empty());
}

/// Content that was received elsewhere counts as received.
#[test]
fn content_may_be_received_elsewhere() {
    let (mut inbound, mut intake) = (Inbound::default(), Intake::default());
    receive(&mut intake, &post(10, 100), 0);
    read(&mut inbound, &mut intake);
    assert_eq!(inbound.expected(), 10);
    inbound.take_content(4);
    assert_eq!((inbound.expected(), inbound.is_in_body()), (6, true));
    inbound.take_content(6);
    assert_eq!(inbound.expected(), 0);
    assert_eq!(inbound.poll(&mut intake, &Limits::default()), Event::Complete);
    inbound.take_content(1);
    assert_eq!(inbound.poll(&mut intake, &Limits::default()), Event::Complete);
}
