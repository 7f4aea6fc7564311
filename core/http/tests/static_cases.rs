//! Cases of `tests/cases/static` about conditions, ranges and codings, without files.

use std::collections::BTreeMap;

use crate::case::{Block, blocks};
use poorhttp_http::{
    ConditionalFields, ContentCoding, Event, Limits, Precondition, Ranges, ReadBuffer, RequestParser, Validators,
};

/// Sun, 06 Nov 1994 08:49:37 GMT, the default modification time of the files.
const MODIFIED: u64 = 784_111_777;
/// Earlier times are constants that package managers set.
const CONSTANTS_END: u64 = 631_152_000;
/// Long after every modification time.
const NOW: u64 = 2_000_000_000;

/// A file of a case.
#[derive(Clone, Debug)]
struct File {
    length: u64,
    modified: u64,
}

const SITE: (&str, &str) = ("site.txt", include_str!("../../../tests/cases/static/site.txt"));
const CASES: [(&str, &str); 3] = [
    ("conditions.txt", include_str!("../../../tests/cases/static/conditions.txt")),
    ("ranges.txt", include_str!("../../../tests/cases/static/ranges.txt")),
    ("codings.txt", include_str!("../../../tests/cases/static/codings.txt")),
];

fn files() -> BTreeMap<Vec<u8>, File> {
    let file = |block: &Block| {
        let name = block.get_bytes("file")?;
        let length = match (block.get_number("size"), block.get_bytes("content")) {
            (Some(size), _) => size.unsigned_abs(),
            (None, Some(content)) => content.len() as u64,
            (None, None) => name.len() as u64 + 1,
        };
        let modified = block.get_number("modified").map_or(MODIFIED, |seconds| seconds.try_into().unwrap_or(0));
        Some((name, File { length, modified }))
    };
    blocks([SITE], &["file", "link", "folder", "fifo", "socket"], usize::MAX).iter().filter_map(file).collect()
}

/// The response of a server with such a file: status, coding, and the ranges of a 206.
fn answer(request: &str, files: &BTreeMap<Vec<u8>, File>, name: &[u8]) -> (u16, Option<ContentCoding>, String) {
    let (mut parser, mut buffer) = (RequestParser::default(), ReadBuffer::default());
    buffer.room(request.len() as u64)[..request.len()].copy_from_slice(request.as_bytes());
    buffer.received(request.len());
    assert_eq!(parser.poll(&mut buffer, &Limits::default()), Event::Head, "{request:?}");
    let conditional = ConditionalFields::of(&buffer.head, buffer.head_bytes());
    let original = &files[name];
    let copy = |coding: &ContentCoding| files.get(&[name, b".", coding.extension().as_bytes()].concat());
    let is_ready = |coding: &ContentCoding| copy(coding).is_some_and(|copy| copy.modified >= original.modified);
    let ready: Vec<ContentCoding> = ContentCoding::ALL.into_iter().filter(is_ready).collect();
    let coding = conditional.coding(&ready);
    let file = coding.as_ref().and_then(copy).unwrap_or(original);
    let etag = format!("\"{}\"", coding.map_or("plain", ContentCoding::token));
    let validators = Validators { etag: &etag, modified: (file.modified >= CONSTANTS_END).then_some(file.modified) };
    let text = |range: &std::ops::Range<u64>| format!("{}-{}", range.start, range.end - 1);
    match conditional.precondition(&validators, NOW) {
        Precondition::NotModified => (304, coding, String::new()),
        Precondition::Failed => (412, coding, String::new()),
        Precondition::Holds => match conditional.ranges(file.length, &validators, NOW) {
            Ranges::Whole => (200, coding, String::new()),
            Ranges::One(range) => (206, coding, text(&range)),
            Ranges::Several(ranges) => (206, coding, ranges.iter().map(text).collect::<Vec<_>>().join(" ")),
            Ranges::Unsatisfiable => (416, coding, String::new()),
        },
    }
}

#[test]
fn cases_have_their_expected_result_without_a_server() {
    let files = files();
    let mut count = 0;
    for block in blocks(CASES, &["options", "static"], usize::MAX) {
        let name = block.text("name");
        let status: u16 = block.words("expect")[0].parse().unwrap();
        let ask = String::from_utf8(block.bytes("ask")).unwrap();
        let (method, target) = ask.split_once(" /").unwrap();
        let file = if target.ends_with('/') { format!("{target}index.html") } else { target.to_owned() };
        // Directories and other cases that need a real file system are skipped.
        let of = block.get_bytes("of");
        if !matches!(status, 200 | 206 | 304 | 412 | 416)
            || name == "copy-unreadable"
            || !files.contains_key(file.as_bytes())
        {
            continue;
        }
        let expected_answer = block.pairs("answer");
        let encoding =
            expected_answer.into_iter().find_map(|(name, value)| value.filter(|_| name == "Content-Encoding"));
        let fields = block.lines("field");
        let request = |etag: &str| {
            let lines: String = fields.iter().map(|field| field.replace("{etag}", etag) + "\r\n").collect();
            format!("{method} / HTTP/1.1\r\nHost: a\r\n{}\r\n", lines.replace("{etag /page.html}", "\"plain\""))
        };
        // The chosen coding does not depend on tags, but the tag depends on the coding.
        let (_, coding, _) = answer(&request("\"\""), &files, file.as_bytes());
        let etag = format!("\"{}\"", coding.map_or("plain", ContentCoding::token));
        let found = answer(&request(&etag), &files, file.as_bytes());
        let parts = block.words("part").join(" ");
        assert_eq!((found.0, &found.2), (status, &parts), "{name}");
        if let Some(of) = of.filter(|_| matches!(status, 200 | 206)) {
            let chosen = coding.map_or(file.clone().into_bytes(), |coding| {
                [file.as_bytes(), b".", coding.extension().as_bytes()].concat()
            });
            assert_eq!(chosen, of, "{name}");
            assert_eq!(coding.map(ContentCoding::token), encoding.as_deref(), "{name}");
        }
        count += 1;
    }
    assert!(cfg!(miri) || count > 250, "only {count} cases");
}
