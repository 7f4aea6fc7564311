//! Conditions and ranges, and files that an application names. What they mean is tried in the protocol crate: here, that the
//! answers are what they should be, from memory and from a file.

use super::{Answer, Stage};
use crate::folder::Resolver;
use crate::options::Options;

/// Octets that tell where they stand.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// A small file, which is answered from memory, and a large one, which is not.
fn stage() -> (Stage, [(&'static str, Vec<u8>); 2]) {
    let stage = Stage::new(Resolver::Kernel);
    let files = [("/small.txt", content(1000)), ("/large.txt", content(100_000))];
    for (name, content) in &files {
        stage.write(&name[1..], content);
    }
    (stage, files)
}

#[test]
fn one_range() {
    let (mut stage, files) = stage();
    for (target, content) in files {
        let length = content.len();
        let tag = stage.get(target).field("ETag").unwrap().to_owned();
        for (range, start, end) in [
            ("0-0", 0, 1),
            ("5-9", 5, 10),
            ("990-", 990, length),
            ("-7", length - 7, length),
            ("10-99999999", 10, length),
        ] {
            let answer = stage.ask("GET", target, &format!("Range: bytes={range}\r\n"));
            assert_eq!(answer.status, 206);
            assert_eq!(answer.content, content[start..end], "{target} {range}");
            let position = format!("bytes {start}-{}/{length}", end - 1);
            assert_eq!(answer.field("Content-Range"), Some(position.as_str()));
            assert_eq!(
                (answer.field("ETag"), answer.field("Content-Type")),
                (Some(tag.as_str()), Some("text/plain; charset=utf-8"))
            );
        }
        let answer = stage.ask("GET", target, "Range: bytes=200000-\r\n");
        assert_eq!((answer.status, answer.field("Content-Range")), (416, Some(format!("bytes */{length}").as_str())));
        let answer = stage.ask("GET", target, &format!("Range: bytes=1-2\r\nIf-Range: {tag}\r\n"));
        assert_eq!(answer.status, 206);
        let answer = stage.ask("GET", target, "Range: bytes=1-2\r\nIf-Range: \"other\"\r\n");
        assert_eq!((answer.status, answer.content.len()), (200, length));
    }
}

/// Head and content of each part.
fn parts(answer: &Answer) -> Vec<(String, Vec<u8>)> {
    let media_type = answer.field("Content-Type").unwrap();
    let boundary = media_type.strip_prefix("multipart/byteranges; boundary=").unwrap();
    let content = [b"\r\n", answer.content.as_slice()].concat();
    let line = format!("\r\n--{boundary}");
    let mut places: Vec<usize> = memchr::memmem::find_iter(&content, line.as_bytes()).collect();
    assert_eq!(content[places.pop().unwrap()..], *format!("{line}--\r\n").as_bytes());
    let end = content.len() - line.len() - 4;
    places.push(end);
    let part = |pair: &[usize]| {
        let part = &content[pair[0] + line.len() + 2..pair[1]];
        let head_end = memchr::memmem::find(part, b"\r\n\r\n").unwrap();
        (String::from_utf8(part[..head_end].to_vec()).unwrap(), part[head_end + 4..].to_vec())
    };
    places.windows(2).map(part).collect()
}

#[test]
fn several_ranges() {
    let (mut stage, files) = stage();
    let mut boundaries = Vec::new();
    for (target, content) in files {
        let length = content.len();
        let answer = stage.ask("GET", target, "Range: bytes=900-, 0-1, 100-199\r\n");
        assert_eq!((answer.status, answer.field("Content-Range")), (206, None));
        assert!(answer.field("ETag").is_some() && answer.field("Last-Modified").is_some());
        let expected = [900..length, 0..2, 100..200].map(|range| {
            let position = format!("bytes {}-{}/{length}", range.start, range.end - 1);
            (format!("Content-Type: text/plain; charset=utf-8\r\nContent-Range: {position}"), content[range].to_vec())
        });
        assert_eq!(parts(&answer), expected);
        boundaries.push(answer.field("Content-Type").unwrap().to_owned());
    }
    assert_ne!(boundaries[0], boundaries[1], "nobody can know it before");
}

#[test]
fn conditions() {
    let (mut stage, files) = stage();
    for (target, content) in files {
        let whole = stage.get(target);
        let tag = whole.field("ETag").unwrap();
        let date = whole.field("Last-Modified").unwrap();
        for (fields, status) in [
            (format!("If-None-Match: {tag}"), 304),
            (format!("If-None-Match: \"x\", W/{tag}"), 304),
            ("If-None-Match: *".into(), 304),
            ("If-None-Match: \"x\"".into(), 200),
            (format!("If-Modified-Since: {date}"), 304),
            ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT".into(), 200),
            ("If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT".into(), 412),
            ("If-Match: \"x\"".into(), 412),
            (format!("If-Match: {tag}\r\nRange: bytes=0-0"), 206),
            (format!("If-None-Match: {tag}\r\nRange: bytes=0-0"), 304),
        ] {
            for method in ["GET", "HEAD"] {
                let answer = stage.ask(method, target, &format!("{fields}\r\n"));
                // HEAD knows no ranges.
                let status = if method == "HEAD" && status == 206 { 200 } else { status };
                assert_eq!(answer.status, status, "{method} {target} {fields}");
                match status {
                    304 => {
                        assert_eq!(answer.field("ETag"), Some(tag));
                        assert_eq!((answer.field("Content-Type"), answer.field("Last-Modified")), (None, None));
                    }
                    412 => assert_eq!(answer.field("ETag"), None),
                    206 => assert_eq!(answer.content, content[..1]),
                    _ => assert_eq!(answer, whole),
                }
            }
        }
    }
}

#[test]
fn a_condition_does_not_count_if_a_program_has_been_posted_to() {
    let (stage, _) = stage();
    let answer =
        stage.with_asked("POST", "/program", "Range: bytes=0-1\r\nIf-None-Match: *\r\n", |request| {
            match stage.root.answer(&crate::FileRequest { method: b"GET", path: b"/small.txt", ..*request }) {
                crate::Lookup::Reply(reply) => Answer::of(&reply),
                other => panic!("{other:?}"),
            }
        });
    assert_eq!((answer.status, answer.content.len()), (200, 1000));
}

#[test]
fn an_empty_file() {
    let mut stage = Stage::new(Resolver::Kernel);
    stage.write("empty", "");
    for fields in ["", "Range: bytes=0-\r\n"] {
        let answer = stage.ask("GET", "/empty", fields);
        assert_eq!((answer.status, answer.content.len()), (200, 0), "{fields}");
    }
    assert_eq!(stage.ask("GET", "/empty", "Range: bytes=1-\r\n").field("Content-Range"), Some("bytes */0"));
}

/// What is sent for a file that an application has named, with the names of fields that it has given.
fn named(stage: &mut Stage, fields: &str, path: &str, given: &[&str]) -> Answer {
    stage.poll += 1;
    stage.with_asked("GET", "/application", fields, |request| {
        let request = crate::FileRequest { path: path.as_bytes(), ..*request };
        Answer::of(&stage.root.send_named(&request, &|name| given.contains(&name)))
    })
}

#[test]
fn a_named_file() {
    let (mut stage, files) = stage();
    for (path, content) in files {
        for _ in 0..2 {
            let whole = named(&mut stage, "", path, &[]);
            assert_eq!((whole.status, &whole.content), (200, &content));
            let tag = format!("If-None-Match: {}\r\n", whole.field("ETag").unwrap());
            assert_eq!(named(&mut stage, &tag, path, &[]).status, 304);
            assert_eq!(named(&mut stage, "Range: bytes=1-3\r\n", path, &[]).content, content[1..4]);
            assert_eq!(named(&mut stage, "Range: bytes=999999-\r\n", path, &["Content-Type"]).status, 416);
        }
    }
}

#[test]
fn what_an_application_has_given_is_not_added() {
    let (mut stage, _) = stage();
    let path = "/small.txt";
    for name in ["Content-Type", "ETag", "Last-Modified", "Accept-Ranges"] {
        let answer = named(&mut stage, "", path, &[name]);
        assert_eq!((answer.status, answer.field(name)), (200, None), "{name}");
        assert_eq!(answer.fields.lines().count(), 3);
        let part = named(&mut stage, "Range: bytes=0-1\r\n", path, &[name]);
        assert_eq!((part.status, part.field(name), part.field("Content-Range").is_some()), (206, None, true), "{name}");
    }
    let several = named(&mut stage, "Range: bytes=0-1,5-6\r\n", path, &["Content-Type"]);
    let parts = parts(&several);
    assert_eq!(parts[1], ("Content-Range: bytes 5-6/1000".into(), vec![5, 6]), "which type it has we do not know");
}

#[test]
fn validators_of_an_application_are_its_business() {
    let (mut stage, _) = stage();
    let tag = named(&mut stage, "", "/small.txt", &[]).field("ETag").unwrap().to_owned();
    for own in ["ETag", "Last-Modified"] {
        for (fields, status) in [
            (format!("If-None-Match: {tag}\r\n"), 200),
            ("If-Match: \"x\"\r\n".into(), 200),
            ("Range: bytes=0-1\r\n".into(), 206),
            // Whether this is what the client has a part of, the application would have to say.
            (format!("Range: bytes=0-1\r\nIf-Range: {tag}\r\n"), 200),
        ] {
            assert_eq!(named(&mut stage, &fields, "/small.txt", &[own]).status, status, "{own} {fields}");
        }
    }
}

#[test]
fn a_named_file_is_only_itself() {
    let mut stage = Stage::with(
        Resolver::Kernel,
        Options {
            precompressed: true,
            listing: true,
            index: "index.html".into(),
            not_found: "404".into(),
            ..Options::default()
        },
    );
    stage.write(".hidden", "hidden");
    stage.write("404", "not found");
    stage.write("a/index.html", "index");
    stage.write("a/index.html.gz", "copy");
    assert_eq!(named(&mut stage, "", "/.hidden", &[]).text(), "hidden");
    let answer = named(&mut stage, "Accept-Encoding: gzip\r\n", "/a/index.html", &[]);
    assert_eq!((answer.text(), answer.field("Vary")), ("index", None));
    for path in ["/a", "/a/", "/", "", "/nothing", "/a/../.hidden", "/a//index.html", "/.hidden/"] {
        let answer = named(&mut stage, "", path, &[]);
        assert_eq!(answer.status, 404, "{path}");
        assert_ne!(answer.text(), "not found");
    }
    // What is published under the same name has its copies, and is not hidden's.
    assert_eq!(stage.ask("GET", "/a/index.html", "Accept-Encoding: gzip\r\n").text(), "copy");
    assert_eq!(stage.status("/.hidden"), 404);
}
