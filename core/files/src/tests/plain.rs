//! Files, folders and what is said about them.

use std::fs;

use super::{RESOLVERS, Stage};
use crate::folder::Resolver;
use crate::options::Options;
use crate::static_root::Lookup;

fn strings<const N: usize>(of: [&str; N]) -> [String; N] {
    of.map(String::from)
}

fn fields<const N: usize>(of: [(&str, &str, &str); N]) -> Vec<(String, String, String)> {
    of.map(|(prefix, name, value)| (prefix.into(), name.into(), value.into())).into()
}

#[test]
fn a_file_is_answered_with_all_that_belongs_to_it() {
    for resolver in RESOLVERS {
        let mut stage = Stage::new(resolver);
        stage.write("a/page.html", "<p>hello");
        for method in ["GET", "HEAD", "GET"] {
            let answer = stage.ask(method, "/a/page.html", "");
            assert_eq!((answer.status, answer.text()), (200, "<p>hello"));
            assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
            assert_eq!(answer.field("Accept-Ranges"), Some("bytes"));
            assert_eq!(answer.field("Vary"), None);
            assert!(answer.field("ETag").is_some_and(|tag| tag.starts_with('"') && tag.ends_with("-8\"")));
            assert!(answer.field("Last-Modified").is_some_and(|date| date.ends_with(" GMT")));
        }
    }
}

#[test]
fn a_tag_changes_with_date_and_length() {
    let mut stage = Stage::new(Resolver::Kernel);
    let mut tags = Vec::new();
    for (content, nanoseconds) in [("one", 1_000_000_000), ("one", 1_000_000_001), ("three", 1_000_000_001)] {
        stage.write("file", content);
        let date = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(nanoseconds);
        fs::File::options().write(true).open(stage.path("file")).unwrap().set_modified(date).unwrap();
        let answer = stage.get("/file");
        assert_eq!(answer.field("Last-Modified"), Some("Thu, 01 Jan 1970 00:00:01 GMT"));
        tags.push(answer.field("ETag").unwrap().to_owned());
    }
    assert_eq!(tags, ["\"3b9aca00-3\"", "\"3b9aca01-3\"", "\"3b9aca01-5\""]);
}

#[test]
fn dates_that_no_clock_shows() {
    let mut stage = Stage::new(Resolver::Kernel);
    stage.write("file", "");
    let file = fs::File::options().write(true).open(stage.path("file")).unwrap();
    let epoch = std::time::UNIX_EPOCH;
    let century = std::time::Duration::from_secs(100 * 366 * 86400);
    file.set_modified(epoch - century).unwrap();
    assert_eq!(stage.get("/file").field("Last-Modified"), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
    file.set_modified(epoch + 2 * century).unwrap();
    let now = httpdate::fmt_http_date(epoch + std::time::Duration::from_secs(stage.now));
    // One from the future is said to be of now.
    assert_eq!(stage.get("/file").field("Last-Modified"), Some(now.as_str()));
}

#[test]
fn what_is_not_there_is_said_in_a_line() {
    let mut stage = Stage::new(Resolver::Kernel);
    let answer = stage.get("/nothing");
    assert_eq!((answer.status, answer.text()), (404, "404 Not Found: there is no such file\n"));
    assert_eq!(answer.fields, "Content-Type: text/plain; charset=utf-8\r\n");
}

#[test]
fn other_methods_are_not_allowed() {
    let mut stage = Stage::new(Resolver::Kernel);
    stage.write("file", "");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "get"] {
        let answer = stage.ask(method, "/file", "");
        assert_eq!((answer.status, answer.field("Allow")), (405, Some("GET, HEAD")), "{method}");
    }
}

#[test]
fn an_index_stands_for_its_folder() {
    for resolver in RESOLVERS {
        let mut stage = Stage::new(resolver);
        stage.write("index.html", "top");
        stage.write("a/index.html", "inside");
        stage.write("b/other.html", "other");
        stage.write("c/index.html/deeper", "");
        stage.link("a", "d");
        for (target, content) in [("/", "top"), ("/a/", "inside"), ("/a/?x=y", "inside"), ("/d/", "inside")] {
            for _ in 0..2 {
                let answer = stage.get(target);
                assert_eq!((answer.status, answer.text()), (200, content), "{target}");
                assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
            }
        }
        for target in ["/b/", "/c/", "/b", "/c", "/index.html/", "/index.html/index.html"] {
            assert_eq!(stage.status(target), 404, "{target}");
        }
        fs::remove_file(stage.path("a/index.html")).unwrap();
        assert_eq!(stage.status("/a/"), 404);
    }
}

#[test]
fn a_folder_without_a_slash_is_redirected() {
    for resolver in RESOLVERS {
        let mut stage = Stage::new(resolver);
        stage.write("a b/\u{e9}+c/index.html", "");
        for (target, location) in
            [("/a%20b/%c3%a9+c", "/a%20b/%C3%A9+c/"), ("/a%20b/%C3%A9+c?x=%2F&y=//z", "/a%20b/%C3%A9+c/?x=%2F&y=//z")]
        {
            let answer = stage.get(target);
            assert_eq!((answer.status, answer.field("Location")), (301, Some(location)));
        }
        // Another path than the client's: the query was not for it.
        let found = stage.with_path("/a b/\u{e9}+c".as_bytes(), |request, root| root.answer(request));
        let Lookup::Reply(reply) = found else { panic!("{found:?}") };
        assert!(reply.fields.ends_with(b"Location: /a%20b/%C3%A9+c/\r\n"));
        for target in ["//a%20b/%c3%a9+c", "/%2fa%20b/%c3%a9+c", "/a%20b"] {
            assert_eq!(stage.status(target), 404, "{target}");
        }
    }
}

#[test]
fn a_prefix_is_not_part_of_the_name() {
    let mut stage = Stage::new(Resolver::Kernel);
    stage.write("index.html", "top");
    stage.write("file", "file");
    stage.prefix = "/static";
    assert_eq!(stage.get("/static").field("Location"), Some("/static/"));
    assert_eq!(stage.get("/static/").text(), "top");
    assert_eq!(stage.get("/static/file").text(), "file");
    assert_eq!(stage.status("/static//file"), 404);
}

#[test]
fn another_file_may_be_sent_with_404() {
    let [not_found, charset] = strings(["404.html", "utf-8"]);
    let mut stage = Stage::with(Resolver::Kernel, Options { not_found, charset, ..Options::default() });
    assert_eq!(stage.get("/nothing").field("Content-Type"), Some("text/plain; charset=utf-8"), "there is none yet");
    stage.write("404.html", "<p>sorry");
    for target in ["/nothing", "/../nothing", "/.hidden", "/a%2fb", "/nothing"] {
        let answer = stage.ask("GET", target, "Range: bytes=0-0\r\nIf-None-Match: *\r\n");
        assert_eq!((answer.status, answer.text()), (404, "<p>sorry"), "{target}");
        assert_eq!(answer.fields, "Content-Type: text/html; charset=utf-8\r\n");
        assert!(matches!(stage.found("GET", target, ""), Lookup::NotFound(_)), "others may have it");
    }
    assert_eq!(stage.status("/404.html"), 200);
}

#[test]
fn types_are_told_by_extensions() {
    let types = [("x", "text/x-own"), ("tar.gz", "application/x-own"), ("css", "text/css; charset=latin1")];
    let mut stage = Stage::with(
        Resolver::Kernel,
        Options {
            charset: "utf-8".into(),
            types: types.map(|(extension, name)| (extension.into(), name.into())).into(),
            hidden: true,
            ..Options::default()
        },
    );
    for (name, expected) in [
        ("a.HTML", "text/html; charset=utf-8"),
        ("a.js", "text/javascript; charset=utf-8"),
        ("a.mjs", "text/javascript; charset=utf-8"),
        ("a.json", "application/json"),
        ("a.svg", "image/svg+xml"),
        ("a.wasm", "application/wasm"),
        ("a.html.png", "image/png"),
        ("a.x", "text/x-own; charset=utf-8"),
        ("a.b.tar.gz", "application/x-own"),
        ("a.gz", "application/gzip"),
        ("a.css", "text/css; charset=latin1"),
        ("a", "application/octet-stream"),
        ("html", "application/octet-stream"),
        (".html", "application/octet-stream"),
        (".a.html", "text/html; charset=utf-8"),
        ("a.", "application/octet-stream"),
        ("a.html ", "application/octet-stream"),
        ("a.text/html", "application/octet-stream"),
        ("a.b/html", "application/octet-stream"),
        ("a.no-such-type", "application/octet-stream"),
    ] {
        stage.write(name, "");
        let target = format!("/{}", name.replace(' ', "%20"));
        assert_eq!(stage.get(&target).field("Content-Type"), Some(expected), "{name}");
    }
}

#[test]
fn fields_are_added_below_prefixes() {
    let fields = fields([
        ("", "X-All", "all"),
        ("", "Cache-Control", "no-cache"),
        ("/s/a", "cache-control", "max-age=1"),
        ("/s/a", "Vary", "Cookie"),
        ("/s/a", "X-Frame-Options", "DENY"),
        ("/s/a/b", "Cache-Control", "max-age=2"),
        ("/s/a/b", "Cache-Control", "immutable"),
        ("/s/a/b/c.txt", "content-type", "text/odd"),
        ("/s/a/b/c.txt", "Content-Language", "de"),
    ]);
    let mut stage = Stage::with(Resolver::Kernel, Options { fields, precompressed: true, ..Options::default() });
    stage.prefix = "/s";
    for name in ["c.txt", "a/c.txt", "ab/c.txt", "a/b/c.txt", "a/b/c.txt.gz", "a/b/d.txt"] {
        stage.write(name, "");
    }
    for (target, expected) in [
        ("/s/c.txt", &["Cache-Control: no-cache", "X-All: all"][..]),
        ("/s/ab/c.txt", &["Cache-Control: no-cache", "X-All: all"]),
        ("/s/a/c.txt", &["Vary: Cookie", "X-All: all", "X-Frame-Options: DENY", "cache-control: max-age=1"]),
        (
            "/s/a/b/d.txt",
            &[
                "Cache-Control: immutable",
                "Cache-Control: max-age=2",
                "Vary: Cookie",
                "X-All: all",
                "X-Frame-Options: DENY",
            ],
        ),
        (
            "/s/a/b/c.txt",
            &[
                "Cache-Control: immutable",
                "Cache-Control: max-age=2",
                "Content-Language: de",
                "Vary: Accept-Encoding",
                "Vary: Cookie",
                "X-All: all",
                "X-Frame-Options: DENY",
                "content-type: text/odd",
            ],
        ),
    ] {
        let ours = ["ETag", "Last-Modified", "Accept-Ranges", "Content-Type"];
        let added = |fields: &str| {
            let is_ours = |line: &&str| ours.contains(&line.split(':').next().unwrap());
            let mut added: Vec<_> = fields.lines().filter(|line| !is_ours(line)).map(String::from).collect();
            added.sort();
            added
        };
        assert_eq!(added(&stage.get(target).fields), expected, "{target}");
        let unchanged = stage.ask("GET", target, "If-None-Match: *\r\n");
        let expected: Vec<_> = expected.iter().filter(|line| !line.to_lowercase().starts_with("content-")).collect();
        assert_eq!(
            added(&unchanged.fields),
            expected.as_slice().iter().map(|line| **line).collect::<Vec<_>>(),
            "304 {target}"
        );
        assert!(unchanged.fields.contains("ETag"));
    }
    assert!(!stage.get("/s/nothing").fields.contains("X-All"), "to files");
}

#[test]
fn some_fields_cannot_be_added() {
    for (name, value) in [
        ("Content-Length", "1"),
        ("Server", "own"),
        ("transfer-encoding", "chunked"),
        ("Connection", "close"),
        ("Content-Range", "bytes 0-0/1"),
        ("Date", "now"),
        ("", "x"),
        ("X Y", "x"),
        ("X", "a\r\nY: b"),
        ("X", "\u{e9}"),
    ] {
        let around = tempfile::tempdir().unwrap();
        let options =
            Options { folder: around.path().into(), fields: fields([("", name, value)]), ..Options::default() };
        let error = crate::StaticRoot::new(options, Default::default()).err();
        assert_eq!(error.map(|error| error.kind()), Some(std::io::ErrorKind::InvalidInput), "{name}: {value}");
    }
}
