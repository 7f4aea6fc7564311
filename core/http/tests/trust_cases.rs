//! Cases of `tests/cases/trust` without a server.

use std::collections::BTreeMap;

use crate::trust::{self, Outcome, cases, handle};

/// The environ of a request without proxy headers.
fn plain(case: &trust::Case) -> BTreeMap<String, String> {
    let bare = trust::Case { fields: Vec::new(), target: "/".into(), preamble: Vec::new(), ..case.clone() };
    // The environ of a proxy that sends no header is the plain one.
    let bare = trust::Case { proxied: false, ..bare };
    match handle(&bare, usize::MAX) {
        Outcome::Request(environ) => environ,
        Outcome::Refused(status, reason) => panic!("{}: {status} {reason} to nothing", case.name),
    }
}

#[test]
fn every_case_has_its_expected_result() {
    let cases = cases();
    assert!(cfg!(miri) || cases.len() >= 400, "only {} cases were found", cases.len());
    for case in cases {
        let outcome = handle(&case, usize::MAX);
        match (&case.refusal, outcome) {
            (Some(refusal), Outcome::Refused(status, reason)) => {
                assert_eq!(*refusal, format!("{status} {reason}"), "{}", case.name);
            }
            (None, Outcome::Request(environ)) => {
                let mut expected = plain(&case);
                case.expect(&mut expected);
                for key in trust::WATCHED.iter().map(|key| (*key).to_owned()).chain(case.environ.keys().cloned()) {
                    assert_eq!(environ.get(&key), expected.get(&key), "{}: {key}", case.name);
                }
            }
            (Some(refusal), Outcome::Request(environ)) => panic!("{}: {environ:?} instead of {refusal}", case.name),
            (None, Outcome::Refused(status, reason)) => panic!("{}: {status} {reason}", case.name),
        }
    }
}

#[test]
fn the_result_does_not_depend_on_how_bytes_arrive() {
    for case in cases() {
        let whole = handle(&case, usize::MAX);
        for piece in [1, 2, 7, 16, 53] {
            assert_eq!(handle(&case, piece), whole, "{}, {piece} bytes at once", case.name);
        }
    }
}

/// Random combinations of the fields of all cases change nothing if the peer is not trusted.
#[test]
fn fields_of_an_untrusted_peer_change_nothing() {
    let all = cases();
    let fields: Vec<&String> = all.iter().flat_map(|case| &case.fields).collect();
    let mut random = 4_711_u64;
    let mut next = |most: usize| {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % most as u64) as usize
    };
    for _ in 0..if cfg!(miri) { 20 } else { 20_000 } {
        let model = &all[next(all.len())];
        let mut case = trust::Case { peer: "192.0.2.99".into(), networks: "10.0.0.0/8 unix".into(), ..model.clone() };
        case.fields = (0..next(6)).map(|_| fields[next(fields.len())].clone()).collect();
        (case.preamble, case.target) = (Vec::new(), "/".into());
        let Outcome::Request(environ) = handle(&case, usize::MAX) else { panic!("refused: {:?}", case.fields) };
        let expected = plain(&case);
        for key in trust::WATCHED {
            assert_eq!(environ.get(key), expected.get(key), "{key} by {:?}", case.fields);
        }
        let told: Vec<_> = environ.keys().filter(|key| key.contains("FORWARDED")).collect();
        assert!(told.is_empty(), "{told:?}");
    }
}

/// No forged element before those of a trusted proxy changes the result.
#[test]
fn elements_left_of_an_untrusted_address_change_nothing() {
    for case in cases().into_iter().filter(|case| case.refusal.is_none() && case.preamble.is_empty()) {
        let says = |prefix: &str| case.fields.iter().any(|field| field.to_ascii_lowercase().starts_with(prefix));
        if !says("x-forwarded-for: ") || says("forwarded:") {
            continue;
        }
        let outcome = handle(&case, usize::MAX);
        for forged in ["1.1.1.1", "10.0.0.9", "127.0.0.1, 10.0.0.8", "unknown", "unix:", "x"] {
            let mut longer = case.clone();
            // The walk ends at an untrusted address at the latest; a case with trusted addresses only needs one.
            longer.fields.insert(0, format!("X-Forwarded-For: {forged}, 198.51.100.77"));
            let (Outcome::Request(environ), Outcome::Request(before)) = (handle(&longer, usize::MAX), &outcome) else {
                continue;
            };
            let ends_at_us = environ.get("REMOTE_ADDR").is_some_and(|address| address == "198.51.100.77");
            let is_everybody = case.networks.contains("0.0.0.0/0");
            assert!(
                ends_at_us || is_everybody || environ.get("REMOTE_ADDR") == before.get("REMOTE_ADDR"),
                "{}",
                case.name
            );
        }
    }
}
