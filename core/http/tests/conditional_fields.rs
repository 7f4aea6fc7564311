//! Preconditions, ranges and content codings from request fields.

use std::ops::Range;

use poorhttp_http::{
    ConditionalFields, ContentCoding, Event, Head, Limits, Precondition, Ranges, ReadBuffer, RequestParser, Validators,
};

/// Sun, 06 Nov 1994 08:49:37 GMT, the date of the RFC's examples.
const MODIFIED: u64 = 784_111_777;
/// A day later.
const NOW: u64 = MODIFIED + 86_400;
const OURS: Validators<'_> = Validators { etag: "\"a\"", modified: Some(MODIFIED) };
const WEAK: Validators<'_> = Validators { etag: "W/\"a\"", modified: Some(MODIFIED) };

fn parse(request: &str) -> (Head, Vec<u8>) {
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    buffer.room(request.len() as u64)[..request.len()].copy_from_slice(request.as_bytes());
    buffer.received(request.len());
    assert_eq!(parser.poll(&mut buffer, &Limits::default()), Event::Head, "{request:?}");
    (buffer.head.clone(), buffer.head_bytes().to_vec())
}

/// The result of `ask` for a request with these fields.
fn asked<T>(method: &str, fields: &[&str], ask: impl Fn(ConditionalFields<'_>) -> T) -> T {
    let lines: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let (head, bytes) = parse(&format!("{method} / HTTP/1.1\r\nHost: a\r\n{lines}\r\n"));
    ask(ConditionalFields::of(&head, &bytes))
}

fn precondition(fields: &[&str]) -> Precondition {
    let of = |method| asked(method, fields, |conditional| conditional.precondition(&OURS, NOW));
    assert_eq!(of("GET"), of("HEAD"), "{fields:?}");
    of("GET")
}

fn ranges_of(length: u64, fields: &[&str]) -> Ranges {
    asked("GET", fields, |conditional| conditional.ranges(length, &OURS, NOW))
}

/// The ranges of a file of ten bytes.
fn ranges(value: &str) -> Ranges {
    ranges_of(10, &[&format!("Range: {value}")])
}

fn coding(values: &[&str]) -> Option<ContentCoding> {
    coding_of(&ContentCoding::ALL, values)
}

fn coding_of(available: &[ContentCoding], values: &[&str]) -> Option<ContentCoding> {
    let fields: Vec<String> = values.iter().map(|value| format!("Accept-Encoding: {value}")).collect();
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    asked("GET", &fields, |conditional| conditional.coding(available))
}

use ContentCoding::{Brotli, Gzip, Zstd};
use Precondition::{Failed, Holds, NotModified};
use Ranges::{One, Several, Unsatisfiable, Whole};

// Fields

#[test]
fn names_are_found_in_any_case_and_by_all_their_letters() {
    let is_plain = |field: &str| asked("GET", &[field], |conditional| conditional.is_plain());
    for name in ["Range", "If-Match", "If-Range", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"] {
        assert!(!is_plain(&format!("{name}: x")));
        assert!(!is_plain(&format!("{}: x", name.to_uppercase())));
        assert!(!is_plain(&format!("{}:", name.to_lowercase())));
        assert!(is_plain(&format!("{}x: x", &name[..name.len() - 1])));
        assert!(is_plain(&format!("{}_{}: x", &name[..2], &name[3..])));
    }
    assert!(is_plain("Accept-Encoding: gzip"));
    assert!(is_plain("Cache-Control: If-None-Match"));
}

#[test]
fn without_fields_the_whole_file_is_selected() {
    asked("GET", &[], |conditional| {
        assert!(conditional.is_plain());
        assert_eq!(conditional.precondition(&OURS, NOW), Holds);
        assert_eq!(conditional.ranges(10, &OURS, NOW), Whole);
        assert_eq!(conditional.coding(&ContentCoding::ALL), None);
    });
}

// Preconditions

#[test]
fn if_none_match() {
    for same in [
        "\"a\"",
        "W/\"a\"",
        "*",
        "\"b\", \"a\"",
        "\"b\",\"a\"",
        "\"b\"\t,\t \"a\" , \"c\"",
        ", ,\"a\"",
        "\"a\",",
        "\"\", \"a\"",
        "\"b,c\", \"a\"",
        "\"b\\\", \"a\"",
        "W/\"b\", W/\"a\"",
        "\"\u{e9}\", \"a\"",
        "\"a\", c",
    ] {
        assert_eq!(precondition(&[&format!("If-None-Match: {same}")]), NotModified, "{same}");
    }
    for other in [
        "",
        ",",
        "\"b\"",
        "\"A\"",
        "a",
        "'a'",
        "w/\"a\"",
        "W/a",
        "W/",
        "W /\"a\"",
        "W/ \"a\"",
        "\"a",
        "a\"",
        "\"a\"b",
        "\"a\" \"b\"",
        "\"a\"\"a\"",
        "\"a\";q=1",
        "\"a \"",
        "\"b c\", \"a\"",
        "\"b, \"a\"",
        "b, \"a\"",
        "**",
        "*, \"b\"",
        "\"b\", *",
        "\"*\"",
        "\"",
        "\"\"",
    ] {
        assert_eq!(precondition(&[&format!("If-None-Match: {other}")]), Holds, "{other}");
    }
}

#[test]
fn if_none_match_compares_weakly_and_if_match_strongly() {
    let of = |validators: Validators<'static>, field: &str| {
        asked("GET", &[field], |conditional| conditional.precondition(&validators, NOW))
    };
    // RFC 9110 section 8.8.3.2, and a file without a tag.
    for (validators, tag, strong, weak) in [
        (OURS, "\"a\"", true, true),
        (OURS, "W/\"a\"", false, true),
        (WEAK, "\"a\"", false, true),
        (WEAK, "W/\"a\"", false, true),
        (WEAK, "W/\"b\"", false, false),
        (Validators { etag: "", modified: Some(0) }, "\"\"", false, false),
        (Validators { etag: "", modified: Some(0) }, "*", true, true),
    ] {
        let expected = (if strong { Holds } else { Failed }, if weak { NotModified } else { Holds });
        let found = (of(validators, &format!("If-Match: {tag}")), of(validators, &format!("If-None-Match: {tag}")));
        assert_eq!(found, expected, "{validators:?} {tag}");
    }
}

#[test]
fn if_match() {
    for same in ["\"a\"", "*", "\"b\", \"a\"", "W/\"a\", \"a\""] {
        assert_eq!(precondition(&[&format!("If-Match: {same}")]), Holds, "{same}");
    }
    for other in ["", "\"b\"", "W/\"a\"", "a", "\"a", "b, \"a\""] {
        assert_eq!(precondition(&[&format!("If-Match: {other}")]), Failed, "{other}");
    }
}

#[test]
fn tags_in_several_fields() {
    assert_eq!(precondition(&["If-None-Match: \"b\"", "if-none-match: \"a\""]), NotModified);
    assert_eq!(precondition(&["If-Match: \"b\", \"c\"", "If-Match: \"a\""]), Holds);
    assert_eq!(precondition(&["If-None-Match: \"b", "If-None-Match: \"a\""]), Holds);
    assert_eq!(precondition(&["If-None-Match: *", "If-None-Match: \"b\""]), Holds);
}

#[test]
fn dates_have_three_forms() {
    for (date, expected) in [
        ("Sun, 06 Nov 1994 08:49:37 GMT", NotModified),
        ("Sunday, 06-Nov-94 08:49:37 GMT", NotModified),
        ("Sun Nov  6 08:49:37 1994", NotModified),
        ("Sun, 06 Nov 1994 08:49:38 GMT", NotModified),
        ("Fri, 31 Dec 9999 23:59:59 GMT", NotModified),
        ("Sun, 06 Nov 1994 08:49:36 GMT", Holds),
        ("Sunday, 06-Nov-94 08:49:36 GMT", Holds),
        ("Sun Nov  6 08:49:36 1994", Holds),
        ("Thu, 01 Jan 1970 00:00:00 GMT", Holds),
    ] {
        assert_eq!(precondition(&[&format!("If-Modified-Since: {date}")]), expected, "{date}");
    }
}

#[test]
fn malformed_dates_are_ignored() {
    let later = |field: &str| {
        let validators = Validators { etag: "", modified: Some(7_000_000_000) };
        asked("GET", &[field], |conditional| conditional.precondition(&validators, 8_000_000_000))
    };
    for bad in [
        "",
        "0",
        "-1",
        "784111777",
        "Sun, 06 Nov 2094 08:49:37",
        "Sun, 06 Nov 2095 08:49:37 UTC",
        "Mon, 06 Nov 2095 08:49:37 GMT",
        "Sun, 6 Nov 2095 08:49:37 GMT",
        "sun, 06 nov 2095 08:49:37 gmt",
        "Sun, 06 Nov 2095 08:49:37 +0000",
        "Sun, 06 Nov 2095 24:00:00 GMT",
        "Mon, 30 Feb 2095 00:00:00 GMT",
        "Sun, 00 Nov 2095 08:49:37 GMT",
        "Fri, 31 Dec 99999 23:59:59 GMT",
        "Sun, 06 Nov 2095 08:49:37 GMT; length=10",
        "Sun, 06 Nov 2095 08:49:37 GMT, Sun, 06 Nov 2095 08:49:37 GMT",
        "Sunday, 06-Nov-2095 08:49:37 GMT",
        "Nooday, 06-Nov-94 08:49:37 GMT",
        "Sun, 06 N\u{f6}v 2095 08:49:37 GMT",
        "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}x",
    ] {
        assert_eq!(precondition(&[&format!("If-Modified-Since: {bad}")]), Holds, "{bad}");
        assert_eq!(later(&format!("If-Unmodified-Since: {bad}")), Holds, "{bad}");
    }
    assert_eq!(later("If-Unmodified-Since: Sun, 06 Nov 2095 08:49:37 GMT"), Failed);
    let twice = ["If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"; 2];
    assert_eq!(precondition(&twice), Holds);
    let twice = ["If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT"; 2];
    assert_eq!(precondition(&twice), Holds);
}

#[test]
fn if_unmodified_since() {
    for (date, expected) in [("08:49:36", Failed), ("08:49:37", Holds), ("08:49:38", Holds)] {
        assert_eq!(precondition(&[&format!("If-Unmodified-Since: Sun, 06 Nov 1994 {date} GMT")]), expected, "{date}");
    }
}

/// RFC 9110 section 13.2.2: each of the four fields absent, true and false.
#[test]
fn preconditions_have_an_order() {
    let match_fields = [(None, "If-Match: \"a\""), (Some(true), "If-Match: \"a\""), (Some(false), "If-Match: \"b\"")];
    let none_match = [(None, ""), (Some(true), "If-None-Match: \"b\""), (Some(false), "If-None-Match: \"a\"")];
    let unmodified = [
        (None, ""),
        (Some(true), "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT"),
        (Some(false), "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT"),
    ];
    let modified = [
        (None, ""),
        (Some(true), "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT"),
        (Some(false), "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT"),
    ];
    for method in ["GET", "HEAD", "POST", "DELETE"] {
        let is_read = matches!(method, "GET" | "HEAD");
        for (one, if_match) in match_fields {
            for (two, if_unmodified) in unmodified {
                for (three, if_none_match) in none_match {
                    for (four, if_modified) in modified {
                        let expected = match (one, two, three, four) {
                            (Some(false), ..) | (None, Some(false), ..) => Failed,
                            (_, _, Some(false), _) => {
                                if is_read {
                                    NotModified
                                } else {
                                    Failed
                                }
                            }
                            (_, _, None, Some(false)) if is_read => NotModified,
                            _ => Holds,
                        };
                        let all = [(four, if_modified), (three, if_none_match), (two, if_unmodified), (one, if_match)];
                        let fields: Vec<&str> =
                            all.iter().filter(|(value, _)| value.is_some()).map(|(_, field)| *field).collect();
                        let found = asked(method, &fields, |conditional| conditional.precondition(&OURS, NOW));
                        assert_eq!(found, expected, "{method} {fields:?}");
                    }
                }
            }
        }
    }
}

/// RFC 9110 sections 13.1.3 to 13.1.5.
#[test]
fn dates_are_ignored_without_a_modification_time() {
    let undated = Validators { etag: "", modified: None };
    for field in ["If-Modified-Since", "If-Unmodified-Since", "If-Range"] {
        for date in ["Thu, 01 Jan 1970 00:00:00", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 2095 08:49:37"] {
            let fields = [&*format!("{field}: {date} GMT"), "Range: bytes=0-1"];
            assert_eq!(asked("GET", &fields, |conditional| conditional.precondition(&undated, NOW)), Holds);
            let ranges = asked("GET", &fields, |conditional| conditional.ranges(9, &undated, NOW));
            assert_eq!(ranges == Ranges::Whole, field == "If-Range");
        }
    }
}

/// A file from the future has the current time as Last-Modified, so that is compared.
#[test]
fn a_modification_time_in_the_future_counts_as_now() {
    let future = Validators { etag: "", modified: Some(NOW + 1_000) };
    let at = |field: &str, now| asked("GET", &[field], |conditional| conditional.precondition(&future, now));
    let since = "If-Modified-Since: Mon, 07 Nov 1994 08:49:37 GMT";
    assert_eq!(at(since, NOW), NotModified);
    assert_eq!(at(since, NOW + 1), Holds);
    let since = "If-Unmodified-Since: Mon, 07 Nov 1994 08:49:37 GMT";
    assert_eq!(at(since, NOW), Holds);
    assert_eq!(at(since, NOW + 1), Failed);
}

// Ranges

#[test]
fn one_range() {
    for (value, expected) in [
        ("bytes=0-0", 0..1),
        ("bytes=0-9", 0..10),
        ("bytes=3-5", 3..6),
        ("bytes=9-9", 9..10),
        ("bytes=0-", 0..10),
        ("bytes=9-", 9..10),
        ("bytes=5-10", 5..10),
        ("bytes=5-99999999999999999999999999", 5..10),
        ("bytes=5-18446744073709551615", 5..10),
        ("bytes=-1", 9..10),
        ("bytes=-10", 0..10),
        ("bytes=-11", 0..10),
        ("bytes=-99999999999999999999999999", 0..10),
        ("bytes=0003-0005", 3..6),
        ("BYTES=3-5", 3..6),
        ("Bytes=3-5", 3..6),
        ("bytes=,3-5", 3..6),
        ("bytes=3-5,", 3..6),
        ("bytes= , \t,3-5 , ", 3..6),
        ("bytes= 3-5", 3..6),
        // One range is beyond the end.
        ("bytes=3-5,10-", 3..6),
        ("bytes=20-30, -0, 3-5", 3..6),
    ] {
        assert_eq!(ranges(value), One(expected), "{value}");
    }
}

#[test]
fn unsatisfiable_ranges() {
    for value in
        ["bytes=10-", "bytes=10-10", "bytes=-0", "bytes=-000", "bytes=10-,11-,-0", "bytes=99999999999999999999-"]
    {
        assert_eq!(ranges(value), Unsatisfiable, "{value}");
    }
}

#[test]
fn malformed_ranges_are_ignored() {
    for value in [
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes= ",
        "bytes=-",
        "bytes=--1",
        "bytes=a-b",
        "bytes=0-b",
        "bytes=+0-1",
        "bytes=0x0-1",
        "bytes=0",
        "bytes=0-1-2",
        "bytes=1-0",
        "bytes=5-3,0-1",
        "bytes=99999999999999999999-5",
        "bytes=0-1;2-3",
        "bytes=0-1 2-3",
        "bytes=0 -1",
        "bytes=0- 1",
        "bytes= - 1",
        "bytes =0-1",
        "bytes:0-1",
        "bytes 0-1/10",
        "byte=0-1",
        "octets=0-1",
        "bytes=0-1,x",
        "bytes=\u{b2}-3",
        "0-1",
        "=0-1",
        "\u{e9}\u{e9}\u{e9}\u{e9}",
    ] {
        assert_eq!(ranges(value), Whole, "{value}");
    }
    assert_eq!(ranges_of(10, &["Range: bytes=0-1", "Range: bytes=3-4"]), Whole);
}

#[test]
fn several_ranges() {
    for (value, expected) in [
        ("bytes=0-0,2-3", vec![0..1, 2..4]),
        ("bytes=2-3, 0-0", vec![2..4, 0..1]),
        ("bytes=-1,0-0", vec![9..10, 0..1]),
        ("bytes=0-0,20-,-1,-0", vec![0..1, 9..10]),
        // Two ranges overlap or touch.
        ("bytes=6-8,0-2,2-3", vec![6..9, 0..4]),
        ("bytes=2-3,6-8,0-2", vec![0..4, 6..9]),
        ("bytes=0-1,6-8,2-3", vec![0..4, 6..9]),
        ("bytes=0-0,1-1,2-2,8-8,4-4,5-5", vec![0..3, 8..9, 4..6]),
    ] {
        assert_eq!(ranges(value), Several(expected), "{value}");
    }
    for (value, expected) in [
        ("bytes=0-3,2-5", 0..6),
        ("bytes=2-5,0-3", 0..6),
        ("bytes=0-3,4-5", 0..6),
        ("bytes=4-5,0-3", 0..6),
        ("bytes=3-5,3-5", 3..6),
        ("bytes=0-,-1", 0..10),
        ("bytes=0-1,4-5,2-3", 0..6),
        ("bytes=0-0,2-2,4-4,1-1,3-3", 0..5),
    ] {
        assert_eq!(ranges(value), One(expected), "{value}");
    }
}

#[test]
fn too_many_ranges_are_ignored() {
    let set = |ranges: &[String]| ranges_of(1_000, &[&format!("Range: bytes={}", ranges.join(","))]);
    let apart = |count: u64| -> Vec<String> { (0..count).map(|at| format!("{}-{}", at * 3, at * 3)).collect() };
    assert_eq!(set(&apart(32)), Several((0..32).map(|at| at * 3..at * 3 + 1).collect()));
    assert_eq!(set(&apart(33)), Whole);
    assert_eq!(set(&vec!["5000-".to_owned(); 32]), Unsatisfiable);
    assert_eq!(set(&vec!["5000-".to_owned(); 33]), Whole);
    // All ranges touch.
    assert_eq!(set(&(0..32).map(|at| format!("{at}-{at}")).collect::<Vec<_>>()), One(0..32));
    assert_eq!(set(&(0..33).map(|at| format!("{at}-{at}")).collect::<Vec<_>>()), Whole);
    for value in ["0-,0-,0-", "0-5,5-9,9-12", "0-9,2-3,5-6", "0-1,1-2,10-11,11-12", "-5,-4,-3"] {
        assert_eq!(set(&[value.to_owned()]), Whole, "{value}");
    }
}

#[test]
fn ranges_of_an_empty_file() {
    let ranges = |value: &str| ranges_of(0, &[&format!("Range: bytes={value}")]);
    for value in ["0-", "0-0", "0-99", "-1", "-5", "5-,0-", "0-,0-,0-"] {
        assert_eq!(ranges(value), Whole, "{value}");
    }
    for value in ["1-", "1-1", "-0", "5-9,7-"] {
        assert_eq!(ranges(value), Unsatisfiable, "{value}");
    }
}

#[test]
fn the_longest_possible_file() {
    let ranges = |value: &str| ranges_of(u64::MAX, &[&format!("Range: bytes={value}")]);
    assert_eq!(ranges("0-"), One(0..u64::MAX));
    assert_eq!(ranges("18446744073709551614-"), One(u64::MAX - 1..u64::MAX));
    assert_eq!(ranges("18446744073709551615-"), Unsatisfiable);
    assert_eq!(ranges("-18446744073709551615"), One(0..u64::MAX));
    assert_eq!(ranges("0-0,-1"), Several(vec![0..1, u64::MAX - 1..u64::MAX]));
}

#[test]
fn only_get_has_ranges() {
    for method in ["HEAD", "POST", "PUT", "get", "GETS"] {
        assert_eq!(
            asked(method, &["Range: bytes=0-1"], |conditional| conditional.ranges(10, &OURS, NOW)),
            Whole,
            "{method}"
        );
    }
}

#[test]
fn if_range() {
    let of = |validators: Validators<'static>, now, value: &str| {
        let fields = [&format!("If-Range: {value}")[..], "Range: bytes=0-1"];
        asked("GET", &fields, |conditional| conditional.ranges(10, &validators, now)) == One(0..2)
    };
    assert!(of(OURS, NOW, "\"a\""));
    assert!(of(OURS, NOW, "Sun, 06 Nov 1994 08:49:37 GMT"));
    assert!(of(OURS, NOW, "Sunday, 06-Nov-94 08:49:37 GMT"));
    assert!(of(OURS, NOW, "Sun Nov  6 08:49:37 1994"));
    assert!(of(OURS, MODIFIED + 1, "Sun, 06 Nov 1994 08:49:37 GMT"));
    // The file may change again within the second.
    assert!(!of(OURS, MODIFIED, "Sun, 06 Nov 1994 08:49:37 GMT"));
    assert!(!of(OURS, MODIFIED - 1, "Sun, 06 Nov 1994 08:49:37 GMT"));
    assert!(of(OURS, MODIFIED, "\"a\""));
    for other in [
        "",
        "*",
        "a",
        "\"b\"",
        "W/\"a\"",
        "\"b\", \"a\"",
        "\"a\",",
        ",\"a\"",
        "Sun, 06 Nov 1994 08:49:38 GMT",
        "Sun, 06 Nov 1994 08:49:36 GMT",
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "784111777",
    ] {
        assert!(!of(OURS, NOW, other), "{other}");
    }
    for tag in ["\"a\"", "W/\"a\""] {
        assert!(!of(WEAK, NOW, tag), "{tag}");
    }
    let twice = ["If-Range: \"a\"", "If-Range: \"a\"", "Range: bytes=0-1"];
    assert_eq!(ranges_of(10, &twice), Whole);
    assert_eq!(ranges_of(10, &["If-Range: \"a\""]), Whole);
    assert_eq!(ranges_of(10, &["If-Range: \"b\"", "Range: bytes=10-"]), Whole);
}

// Codings

#[test]
fn the_best_accepted_coding() {
    for (value, expected) in [
        ("gzip", Some(Gzip)),
        ("x-gzip", Some(Gzip)),
        ("X-GZIP", Some(Gzip)),
        ("GZip", Some(Gzip)),
        ("br", Some(Brotli)),
        ("zstd", Some(Zstd)),
        ("gzip, deflate, br, zstd", Some(Brotli)),
        ("gzip, zstd", Some(Zstd)),
        ("*", Some(Brotli)),
        ("br;q=0, *", Some(Zstd)),
        ("gzip;q=1.0, br;q=0.9", Some(Gzip)),
        ("gzip;q=0.001", Some(Gzip)),
        ("gzip;q=0.999, br;q=0.998", Some(Gzip)),
        ("gzip;q=0.50, br;q=0.5", Some(Brotli)),
        ("gzip ; q=0.5\t,\tbr ;Q=0.4", Some(Gzip)),
        (",gzip,,", Some(Gzip)),
        ("identity, gzip", Some(Gzip)),
        ("identity;q=0.5, gzip;q=0.5", Some(Gzip)),
        ("identity;q=0.6, gzip;q=0.5", None),
        ("identity;q=0.6, gzip;q=0.5, br", Some(Brotli)),
        ("identity;q=0, gzip;q=0.1", Some(Gzip)),
        ("identity;q=0, *;q=0.1", Some(Brotli)),
        ("*;q=0.5, gzip;q=0.4", Some(Brotli)),
        ("*;q=0, gzip", Some(Gzip)),
        ("*;q=0, gzip;q=0.1", Some(Gzip)),
        ("gzip;q=0.3, deflate;q=1", Some(Gzip)),
        // No supported coding, or none at all.
        ("", None),
        ("identity", None),
        ("deflate", None),
        ("compress, sdch", None),
        ("gzip;q=0", None),
        ("gzip;q=0.000", None),
        ("*;q=0", None),
        ("identity;q=0", None),
        ("gzip;q=0, br;q=0, zstd;q=0", None),
        ("identity;q=1, *;q=0.5", None),
        ("gzip2", None),
        ("xgzip", None),
        // The lower of two values counts.
        ("gzip, gzip;q=0", None),
        ("gzip;q=0, gzip", None),
        ("x-gzip;q=0, gzip", None),
    ] {
        assert_eq!(coding(&[value]), expected, "{value}");
    }
    assert_eq!(coding(&[]), None);
}

#[test]
fn malformed_members_are_ignored() {
    for member in [
        "gzip;q=2",
        "gzip;q=1.001",
        "gzip;q=0.0001",
        "gzip;q=0.5000",
        "gzip;q=1.0000",
        "gzip;q=-1",
        "gzip;q=.5",
        "gzip;q=00",
        "gzip;q=01",
        "gzip;q=",
        "gzip;q",
        "gzip;",
        "gzip;q=1;x=y",
        "gzip;x=y",
        "gzip;q =1",
        "gzip;q= 1",
        "gzip;q=0,5",
        "gzip;q=0.5a",
        "gzip;q=1e0",
        "gzip q=1",
        "gz ip",
        "\"gzip\"",
        ";q=1",
    ] {
        assert_eq!(coding(&[member]), None, "{member}");
        assert_eq!(coding(&[&format!("{member}, br;q=0.1")]), Some(Brotli), "{member}");
    }
    for good in ["gzip;q=1.", "gzip;q=1.0", "gzip;q=1.00", "gzip;q=1.000", "gzip;q=0.9", "gzip;q=0.123"] {
        assert_eq!(coding(&[good]), Some(Gzip), "{good}");
    }
}

#[test]
fn only_available_codings_are_chosen() {
    assert_eq!(coding_of(&[], &["gzip, br"]), None);
    assert_eq!(coding_of(&[Gzip], &["gzip;q=0.1, br"]), Some(Gzip));
    assert_eq!(coding_of(&[Gzip], &["br"]), None);
    // Of equal quality, the first.
    assert_eq!(coding_of(&[Brotli, Zstd, Gzip], &["gzip, zstd, br"]), Some(Brotli));
    assert_eq!(coding_of(&[Gzip, Zstd, Brotli], &["br, zstd, gzip"]), Some(Gzip));
    assert_eq!(coding_of(&[Gzip, Zstd], &["gzip, br, *;q=0.5"]), Some(Gzip));
    // `*` includes identity.
    assert_eq!(coding_of(&[Gzip], &["gzip;q=0.4, *;q=0.5"]), None);
}

#[test]
fn codings_in_several_fields() {
    assert_eq!(coding(&["gzip;q=0.5", "br;q=0.4"]), Some(Gzip));
    assert_eq!(coding(&["gzip", "gzip;q=0"]), None);
    assert_eq!(coding(&["", "zstd"]), Some(Zstd));
}

#[test]
fn names_of_codings() {
    let names: Vec<_> = ContentCoding::ALL.iter().map(|coding| (coding.token(), coding.extension())).collect();
    assert_eq!(names, [("br", "br"), ("zstd", "zst"), ("gzip", "gz")]);
}

// Random fields

/// Reproducible random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Miri is a thousand times slower.
const ROUNDS: u64 = if cfg!(miri) { 20 } else { 20_000 };

/// The response has each requested byte once, or everything.
#[test]
fn ranges_are_sets_of_bytes() {
    let mut dice = Dice(1);
    for _ in 0..ROUNDS {
        let length = dice.below(30);
        let mut asked = vec![false; length as usize];
        let mut specs = Vec::new();
        let mut each: Vec<Range<u64>> = Vec::new();
        for _ in 0..1 + dice.below(6) {
            let (first, more) = (dice.below(35), dice.below(5));
            let (spec, bytes) = match dice.below(8) {
                0 => (format!("{first}-"), first..length),
                1 => (format!("-{first}"), length.saturating_sub(first)..length),
                _ => (format!("{first}-{}", first + more), first..(first + more + 1).min(length)),
            };
            bytes.clone().for_each(|at| asked[at as usize] = true);
            specs.push(spec);
            each.push(bytes);
        }
        let value = format!("Range: bytes={}", specs.join(dice.of(&[",", ", ", " ,,"])));
        let share = |at: usize| {
            each.iter()
                .enumerate()
                .any(|(other, range)| other != at && range.clone().any(|byte| each[at].contains(&byte)))
        };
        let overlapping = (0..each.len()).filter(|&at| share(at)).count();
        let found = ranges_of(length, &[&value]);
        let parts = match found {
            Whole => {
                assert!(length == 0 || overlapping > 2, "{value} of {length}");
                continue;
            }
            Unsatisfiable => vec![],
            One(ref range) => vec![range.clone()],
            Several(ref ranges) => ranges.clone(),
        };
        assert!(overlapping <= 2, "{value}");
        assert!(!matches!(found, Several(_)) || parts.len() > 1, "{value}");
        let mut sent = vec![false; length as usize];
        for part in &parts {
            assert!(part.start < part.end && part.end <= length, "{value}: {part:?}");
            for at in part.clone() {
                assert!(!std::mem::replace(&mut sent[at as usize], true), "{value}: {at} twice");
            }
            assert!(parts.iter().all(|other| other.end != part.start), "{value}: nothing is between two parts");
        }
        assert_eq!(sent, asked, "{value} of {length}");
    }
}

/// Repeated fields mean the same as one field with commas (RFC 9110 section 5.3).
#[test]
fn fields_are_joined_by_commas() {
    let mut dice = Dice(2);
    let members = ["\"a\"", "W/\"a\"", "\"b\"", "W/\"b,\"", "", "*", "c", "\"", "\"x y\"", "\"a\" "];
    let weights = ["gzip", "br;q=0.5", "zstd;q=0.5", "*;q=0.3", "identity", "x-gzip;q=0", "", "br;q=x", "*"];
    for _ in 0..ROUNDS {
        for (name, members) in [("If-None-Match", &members[..]), ("If-Match", &members), ("Accept-Encoding", &weights)]
        {
            let chosen: Vec<&str> = (0..1 + dice.below(4)).map(|_| dice.of(members)).collect();
            let ask = |conditional: ConditionalFields<'_>| {
                (conditional.precondition(&OURS, NOW), conditional.coding(&ContentCoding::ALL))
            };
            let lines: Vec<String> = chosen.iter().map(|member| format!("{name}: {member}")).collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let joined = format!("{name}: {}", chosen.join(", "));
            assert_eq!(asked("GET", &lines, ask), asked("GET", &[&joined], ask), "{joined}");
        }
    }
}

/// The chosen coding has the highest valid quality value.
#[test]
fn no_coding_is_better_than_the_chosen_one() {
    let mut dice = Dice(3);
    for _ in 0..ROUNDS {
        let mut said: Vec<(&str, u64)> = Vec::new();
        for name in ["gzip", "br", "zstd", "identity", "*", "deflate"] {
            if dice.below(2) == 0 {
                said.insert(dice.below(said.len() as u64 + 1) as usize, (name, dice.of(&[0, 1, 250, 500, 999, 1000])));
            }
        }
        let available: Vec<ContentCoding> = ContentCoding::ALL.into_iter().filter(|_| dice.below(2) == 0).collect();
        let value: Vec<String> =
            said.iter().map(|(name, quality)| format!("{name};q={}.{:03}", quality / 1000, quality % 1000)).collect();
        let value = value.join(", ");
        let of = |name: &str| {
            let named = |wanted: &str| said.iter().find(|(name, _)| *name == wanted).map(|(_, quality)| *quality);
            named(name).or(named("*")).unwrap_or(0)
        };
        let best = available.iter().map(|coding| of(coding.token())).max().unwrap_or(0);
        let expected =
            available.iter().copied().find(|coding| of(coding.token()) == best && best > 0 && best >= of("identity"));
        assert_eq!(coding_of(&available, &[&value]), expected, "{value} of {available:?}");
    }
}
