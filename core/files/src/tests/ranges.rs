//! Tests of multipart range replies, and of files that an application names (`X-Sendfile`).
//!
//! `tests/cases/static/ranges.txt` and `conditions.txt` have the cases that need no access to parts of the crate.

use super::{Answer, Site};
use crate::folder::Resolver;
use crate::options::Options;

/// Bytes that differ from their neighbours.
fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// A small file, which is sent from memory, and a large one, which is not.
fn site() -> (Site, [(&'static str, Vec<u8>); 2]) {
    let site = Site::new(Resolver::Kernel);
    let files = [("/small.txt", content(1000)), ("/large.txt", content(100_000))];
    for (name, content) in &files {
        site.write(&name[1..], content);
    }
    (site, files)
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
    let (mut site, files) = site();
    let mut boundaries = Vec::new();
    for (target, content) in files {
        let length = content.len();
        let answer = site.ask("GET", target, "Range: bytes=900-, 0-1, 100-199\r\n");
        assert_eq!((answer.status, answer.field("Content-Range")), (206, None));
        assert!(answer.field("ETag").is_some() && answer.field("Last-Modified").is_some());
        let expected = [900..length, 0..2, 100..200].map(|range| {
            let position = format!("bytes {}-{}/{length}", range.start, range.end - 1);
            (format!("Content-Type: text/plain; charset=utf-8\r\nContent-Range: {position}"), content[range].to_vec())
        });
        assert_eq!(parts(&answer), expected);
        boundaries.push(answer.field("Content-Type").unwrap().to_owned());
    }
    assert_ne!(boundaries[0], boundaries[1], "the boundary is random");
}

#[test]
fn preconditions_of_a_post_do_not_count_after_a_redirect_to_a_file() {
    let (site, _) = site();
    let answer =
        site.with_request("POST", "/program", "Range: bytes=0-1\r\nIf-None-Match: *\r\n", |request| {
            match site.root.answer(&crate::FileRequest { method: b"GET", path: b"/small.txt", ..*request }) {
                crate::Lookup::Reply(reply) => Answer::of(&reply),
                other => panic!("{other:?}"),
            }
        });
    assert_eq!((answer.status, answer.content.len()), (200, 1000));
}

/// The reply with a file that an application names; `given`: names of the fields that it sets.
fn named(site: &mut Site, fields: &str, path: &str, given: &[&str]) -> Answer {
    site.poll += 1;
    site.with_request("GET", "/application", fields, |request| {
        let request = crate::FileRequest { path: path.as_bytes(), ..*request };
        let value = |name: &str| given.contains(&name).then_some("own");
        let given = crate::GivenFields { value: &value, is_evaluated_anew: false };
        match site.root.send_named(&request, &given) {
            crate::Lookup::Reply(reply) | crate::Lookup::NotFound(reply) => Answer::of(&reply),
            other => panic!("{other:?}"),
        }
    })
}

#[test]
fn a_named_file() {
    let (mut site, files) = site();
    for (path, content) in files {
        for _ in 0..2 {
            let whole = named(&mut site, "", path, &[]);
            assert_eq!((whole.status, &whole.content), (200, &content));
            let tag = format!("If-None-Match: {}\r\n", whole.field("ETag").unwrap());
            assert_eq!(named(&mut site, &tag, path, &[]).status, 304);
            assert_eq!(named(&mut site, "Range: bytes=1-3\r\n", path, &[]).content, content[1..4]);
            assert_eq!(named(&mut site, "Range: bytes=999999-\r\n", path, &["Content-Type"]).status, 416);
        }
    }
}

#[test]
fn fields_given_by_the_application_are_not_added() {
    let (mut site, _) = site();
    let path = "/small.txt";
    for name in ["Content-Type", "ETag", "Last-Modified", "Accept-Ranges"] {
        let answer = named(&mut site, "", path, &[name]);
        assert_eq!((answer.status, answer.field(name)), (200, None), "{name}");
        assert_eq!(answer.fields.lines().count(), 3);
        let part = named(&mut site, "Range: bytes=0-1\r\n", path, &[name]);
        assert_eq!((part.status, part.field(name), part.field("Content-Range").is_some()), (206, None, true), "{name}");
    }
    let several = named(&mut site, "Range: bytes=0-1,5-6\r\n", path, &["Content-Type"]);
    let parts = parts(&several);
    assert_eq!(parts[1], ("Content-Range: bytes 5-6/1000".into(), vec![5, 6]), "the type is unknown");
}

#[test]
fn a_named_svgz_has_the_coding_unless_the_application_gives_its_type() {
    let (mut site, _) = site();
    site.write("a.svgz", "gzip");
    assert_eq!(named(&mut site, "", "/a.svgz", &[]).field("Content-Encoding"), Some("gzip"));
    assert_eq!(named(&mut site, "", "/a.svgz", &["Content-Type"]).field("Content-Encoding"), None);
}

#[test]
fn validators_of_the_application_replace_those_of_the_file() {
    let (mut site, _) = site();
    let tag = named(&mut site, "", "/small.txt", &[]).field("ETag").unwrap().to_owned();
    for own in ["ETag", "Last-Modified"] {
        for (fields, status) in [
            (format!("If-None-Match: {tag}\r\n"), 200),
            ("If-Match: \"x\"\r\n".into(), 200),
            ("Range: bytes=0-1\r\n".into(), 206),
            // Only the application knows whether the client has a part of this version.
            (format!("Range: bytes=0-1\r\nIf-Range: {tag}\r\n"), 200),
        ] {
            assert_eq!(named(&mut site, &fields, "/small.txt", &[own]).status, status, "{own} {fields}");
        }
    }
}

#[test]
fn a_named_file_has_no_copies_no_index_and_no_error_page() {
    let mut site = Site::with(
        Resolver::Kernel,
        Options {
            precompressed: true,
            listing: true,
            index: "index.html".into(),
            not_found: "404".into(),
            ..Options::default()
        },
    );
    site.write(".hidden", "hidden");
    site.write("404", "not found");
    site.write("a/index.html", "index");
    site.write("a/index.html.gz", "copy");
    assert_eq!(named(&mut site, "", "/.hidden", &[]).text(), "hidden");
    let answer = named(&mut site, "Accept-Encoding: gzip\r\n", "/a/index.html", &[]);
    assert_eq!((answer.text(), answer.field("Vary")), ("index", None));
    for path in ["/a", "/a/", "/", "", "/nothing", "/a/../.hidden", "/a//index.html", "/.hidden/"] {
        let answer = named(&mut site, "", path, &[]);
        assert_eq!(answer.status, 404, "{path}");
        assert_ne!(answer.text(), "not found");
    }
    // Requested by path, the same file has its copies, and hidden files are not found.
    assert_eq!(site.ask("GET", "/a/index.html", "Accept-Encoding: gzip\r\n").text(), "copy");
    assert_eq!(site.status("/.hidden"), 404);
}

#[test]
fn a_percent_sign_that_is_no_escape_stays_in_a_location() {
    let mut roots = crate::SendfileRoots::default();
    roots.add_location("/files/", Site::new(Resolver::Kernel).root);
    let target = roots.target_of("X-Accel-Redirect", "/files/100%.t%78t?query").unwrap();
    let (_, path, offset) = roots.find(&target).next().unwrap();
    assert_eq!((&*path, offset), (&b"/files/100%.txt"[..], 6));
}
