//! The cases of the gateway protocols, however their octets arrive.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod case;
mod packet;
mod receiver;

use std::collections::BTreeMap;

use packet::{Case, Expected, cases};
use poorhttp_http::{Event, Inbound, Protocol};
use receiver::{Message, Outcome, Receiver};

fn receive<'a>(protocol: Protocol, parts: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut receiver = Receiver { inbound: Inbound::of(protocol), ..Receiver::default() };
    parts.into_iter().for_each(|part| receiver.feed(part));
    receiver.outcome()
}

/// Where octets are cut in two: everywhere, but in the middle of something long only here and there.
fn cuts(length: usize) -> impl Iterator<Item = usize> {
    const NEAR: usize = 300;
    (0..=length).filter(move |&cut| cut < NEAR || length - cut < NEAR || cut % 997 == 0)
}

/// What the environ says of a request.
fn environ(message: &Message) -> BTreeMap<String, Vec<u8>> {
    let (head, octets) = (&message.head, &message.octets[..]);
    let gateway = head.gateway.as_ref().unwrap();
    let mut environ = BTreeMap::new();
    let mut set = |key: &str, value: &[u8]| environ.insert(key.to_owned(), value.to_vec());
    set("REQUEST_METHOD", message.method());
    set("REQUEST_URI", message.target());
    set("RAW_URI", message.target());
    set("PATH_INFO", &head.decoded_path(octets));
    set("QUERY_STRING", head.query().of(octets));
    set("SCRIPT_NAME", b"");
    set("wsgi.url_scheme", if gateway.secure { b"https" } else { b"http" });
    if gateway.secure {
        set("HTTPS", b"on");
    }
    let client = gateway.client.map(|client| (client.ip().to_canonical().to_string(), client.port().to_string()));
    let (address, port) = client.unwrap_or_default();
    set("REMOTE_ADDR", address.as_bytes());
    set("REMOTE_PORT", port.as_bytes());
    for variable in &gateway.variables {
        set(str::from_utf8(variable.name.of(octets)).unwrap(), variable.value.of(octets));
    }
    for (name, value) in message.fields() {
        let name = str::from_utf8(name).unwrap().replace('-', "_");
        let key = if name.starts_with("CONTENT_") { name } else { format!("HTTP_{name}") };
        // As `core/python/src/environ.rs` does.
        if !matches!(&key[..], "HTTP_PROXY" | "HTTP_TRANSFER_ENCODING") {
            let separator = if key == "HTTP_COOKIE" { "; " } else { ", " };
            environ
                .entry(key)
                .and_modify(|values| *values = [values, separator.as_bytes(), value].concat())
                .or_insert_with(|| value.to_vec());
        }
    }
    let authority = head.authority().of(octets);
    if !authority.is_empty() {
        environ.insert("HTTP_HOST".to_owned(), authority.to_vec());
    }
    environ
}

fn check(case: &Case, outcome: &Outcome) {
    let name = &case.name;
    assert_eq!(outcome.asides, case.aside, "{name}");
    match &case.expected {
        Expected::Taken => {
            let [message] = &outcome.messages[..] else { panic!("{name}: {outcome:?}") };
            let environ = environ(message);
            for (key, value) in &case.environ {
                let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
                let (is, should) = (environ.get(key).map(|is| text(is)), value.as_ref().map(|value| text(value)));
                assert_eq!(is, should, "{name}: {key}");
            }
            assert!(case.body.as_ref().is_none_or(|body| message.body == *body), "{name}: its content");
            assert_eq!(message.head.dialect.protocol, case.protocol, "{name}");
            // Nothing is said of a field or a name twice.
            let upper = |name: &[u8]| name.iter().all(|octet| !octet.is_ascii_lowercase());
            assert!(message.fields().all(|(name, _)| upper(name)), "{name}");
        }
        Expected::Refused(status, reason) => {
            assert!(outcome.messages.is_empty(), "{name} is taken");
            let (is, said) = outcome.rejected.unwrap_or_else(|| panic!("{name} is not refused: {outcome:?}"));
            assert_eq!(is, *status, "{name}: {said}");
            assert!(said.starts_with(reason), "{name}: {said}");
        }
        Expected::Nothing => {
            assert_eq!((&outcome.messages[..], outcome.rejected), (&[][..], None), "{name}");
            assert!(outcome.rest || outcome.unfinished.is_some(), "{name}");
        }
    }
}

#[test]
fn every_case_is_understood_as_it_says() {
    for case in cases() {
        check(&case, &receive(case.protocol, [&case.octets[..]]));
    }
}

#[test]
fn octet_by_octet_it_is_the_same() {
    for case in cases() {
        let whole = receive(case.protocol, [&case.octets[..]]);
        assert_eq!(receive(case.protocol, case.octets.chunks(1)), whole, "{}", case.name);
    }
}

#[test]
fn in_two_parts_it_is_the_same() {
    for case in cases() {
        let whole = receive(case.protocol, [&case.octets[..]]);
        for cut in cuts(case.octets.len()) {
            let (one, two) = case.octets.split_at(cut);
            assert_eq!(receive(case.protocol, [one, two]), whole, "{} cut at {cut}", case.name);
        }
    }
}

#[test]
fn what_is_refused_stays_refused() {
    for case in cases().into_iter().filter(|case| matches!(case.expected, Expected::Refused(..))) {
        let whole = receive(case.protocol, [&case.octets[..]]);
        let mut receiver = Receiver { inbound: Inbound::of(case.protocol), ..Receiver::default() };
        receiver.feed(&case.octets);
        for octet in *b"\x000:" {
            receiver.inbound.next_message(&mut receiver.intake);
            receiver.intake.room(0)[0] = octet;
            receiver.intake.received(1);
            let event = receiver.inbound.poll(&mut receiver.intake, &receiver.limits);
            let Event::Rejected(reject) = event else { panic!("{}: {event:?}", case.name) };
            assert_eq!(Some((reject.status, reject.reason)), whole.rejected, "{}", case.name);
        }
    }
}

/// A connection that is used again has lists that are not empty.
#[test]
fn nothing_of_a_request_is_found_in_the_next() {
    let cases = cases();
    for pair in cases.windows(2) {
        let mut receiver = Receiver { inbound: Inbound::of(pair[0].protocol), ..Receiver::default() };
        receiver.feed(&pair[0].octets);
        let mut intake = receiver.intake;
        intake.clear();
        let mut receiver = Receiver { inbound: Inbound::of(pair[1].protocol), intake, ..Receiver::default() };
        receiver.feed(&pair[1].octets);
        let again = receiver.outcome();
        let fresh = receive(pair[1].protocol, [&pair[1].octets[..]]);
        assert_eq!(again, fresh, "{} behind {}", pair[1].name, pair[0].name);
    }
}
