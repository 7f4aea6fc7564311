//! Tests of header fields, redirects and error replies of files.
//!
//! The cases of `tests/cases/static/paths.txt` and `fields.txt` have the rest.

use std::fs;

use super::{Answer, Site};
use crate::folder::Resolver;
use crate::options::Options;
use crate::static_root::Lookup;

fn fields<const N: usize>(of: [(&str, &str, &str); N]) -> Vec<(String, String, String)> {
    of.map(|(prefix, name, value)| (prefix.into(), name.into(), value.into())).into()
}

/// Sets the modification time of a file.
fn set_modified(site: &Site, name: &str, nanoseconds: u64) {
    let date = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(nanoseconds);
    fs::File::options().write(true).open(site.path(name)).unwrap().set_modified(date).unwrap();
}

#[test]
fn the_etag_changes_with_date_and_length() {
    let mut site = Site::new(Resolver::Kernel);
    let mut tags = Vec::new();
    let first = 784_111_777_000_000_000;
    for (content, nanoseconds) in [("one", first), ("one", first + 1), ("three", first + 1)] {
        site.write("file", content);
        set_modified(&site, "file", nanoseconds);
        let answer = site.get("/file");
        assert_eq!(answer.field("Last-Modified"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
        tags.push(answer.field("ETag").unwrap().to_owned());
    }
    assert_eq!(tags, ["\"ae1b981bc490a00-3\"", "\"ae1b981bc490a01-3\"", "\"ae1b981bc490a01-5\""].map(str::to_owned));
}

#[test]
fn the_etag_changes_with_the_content_if_the_date_is_a_constant() {
    for length in [3, 100_000, 2 << 20] {
        for seconds in [0, 1, 315_532_800, 499_162_500] {
            let mut site = Site::new(Resolver::Kernel);
            let mut tags = Vec::new();
            for (name, letter) in [("a", b'a'), ("b", b'b'), ("same", b'a')] {
                site.write(name, vec![letter; length]);
                set_modified(&site, name, seconds * 1_000_000_000);
                let answer = site.get(&format!("/{name}"));
                assert_eq!(answer.field("Last-Modified"), None);
                tags.push(answer.field("ETag").unwrap().to_owned());
                let again =
                    site.ask("GET", &format!("/{name}"), &format!("If-None-Match: {}\r\n", tags.last().unwrap()));
                assert_eq!((again.status, again.field("ETag")), (304, tags.last().map(String::as_str)));
                let dated = "If-Modified-Since: Sun, 06 Nov 2095 08:49:37 GMT\r\n";
                assert_eq!(site.ask("GET", &format!("/{name}"), dated).status, 200);
                let range = "Range: bytes=0-1\r\nIf-Range: Thu, 01 Jan 1970 00:00:01 GMT\r\n";
                assert_eq!(site.ask("GET", &format!("/{name}"), range).status, 200);
            }
            assert_ne!(tags[0], tags[1]);
            // A large file is not read for its tag, which then differs between hosts.
            assert_eq!(tags[0] == tags[2], length < 1 << 20);
        }
    }
}

#[test]
fn a_replaced_file_with_a_constant_date_is_noticed() {
    let mut site = Site::new(Resolver::Kernel);
    let mut seen = Vec::new();
    for content in ["one", "two"] {
        site.write("new", content);
        set_modified(&site, "new", 1_000_000_000);
        fs::rename(site.path("new"), site.path("file")).unwrap();
        site.poll += 1;
        let answer = site.get("/file");
        seen.push((answer.text().to_owned(), answer.field("ETag").unwrap().to_owned()));
    }
    assert_eq!((&*seen[0].0, &*seen[1].0), ("one", "two"));
    assert_ne!(seen[0].1, seen[1].1);
}

#[test]
fn dates_before_1970_and_in_the_future() {
    let mut site = Site::new(Resolver::Kernel);
    site.write("file", "");
    let file = fs::File::options().write(true).open(site.path("file")).unwrap();
    let epoch = std::time::UNIX_EPOCH;
    let century = std::time::Duration::from_secs(100 * 366 * 86400);
    file.set_modified(epoch - century).unwrap();
    assert_eq!(site.get("/file").field("Last-Modified"), None);
    file.set_modified(epoch + 2 * century).unwrap();
    let now = httpdate::fmt_http_date(epoch + std::time::Duration::from_secs(site.now));
    // A date in the future becomes the current one.
    assert_eq!(site.get("/file").field("Last-Modified"), Some(now.as_str()));
}

#[test]
fn a_missing_file_is_reported_in_one_line() {
    let mut site = Site::new(Resolver::Kernel);
    let answer = site.get("/nothing");
    assert_eq!((answer.status, answer.text()), (404, "404 Not Found: there is no such file\n"));
    assert_eq!(answer.fields, "Content-Type: text/plain; charset=utf-8\r\n");
}

#[test]
fn the_redirect_of_a_rewritten_path_has_no_query() {
    let site = Site::new(Resolver::Kernel);
    site.write("a b/\u{e9}+c/index.html", "");
    // The query was meant for the program that rewrote the path.
    let found = site.with_path("/a b/\u{e9}+c".as_bytes(), |request, root| root.answer(request));
    let Lookup::Reply(reply) = found else { panic!("{found:?}") };
    assert!(reply.status.starts_with("301") && reply.fields.ends_with(b"Location: /a%20b/%C3%A9+c/\r\n"));
}

#[test]
fn a_prefix_is_not_part_of_the_name() {
    let mut site = Site::new(Resolver::Kernel);
    site.write("index.html", "top");
    site.write("file", "file");
    site.prefix = "/static";
    assert_eq!(site.get("/static").field("Location"), Some("/static/"));
    assert_eq!(site.get("/static/").text(), "top");
    assert_eq!(site.get("/static/file").text(), "file");
    assert_eq!(site.status("/static//file"), 404);
}

#[test]
fn another_file_may_be_sent_with_404() {
    let [not_found, charset] = ["404.html", "utf-8"].map(String::from);
    let mut site = Site::with(Resolver::Kernel, Options { not_found, charset, ..Options::default() });
    assert_eq!(site.get("/nothing").field("Content-Type"), Some("text/plain; charset=utf-8"), "no such file yet");
    site.write("404.html", "<p>sorry");
    for target in ["/nothing", "/a%2fb", "/nothing"] {
        let answer = site.get(target);
        assert_eq!((answer.status, answer.text()), (404, "<p>sorry"), "{target}");
        assert_eq!(answer.fields, "Content-Type: text/html; charset=utf-8\r\n");
        assert!(matches!(site.found("GET", target, ""), Lookup::NotFound(_)), "the application may answer instead");
    }
}

#[test]
fn the_media_type_follows_from_the_extension() {
    let types = [("x", "text/x-own"), ("tar.gz", "application/x-own"), ("css", "text/css; charset=latin1")];
    let mut site = Site::with(
        Resolver::Kernel,
        Options {
            charset: "utf-8".into(),
            types: types.map(|(extension, name)| (extension.into(), name.into())).into(),
            hidden: true,
            ..Options::default()
        },
    );
    for (name, expected) in [
        ("a.html.png", "image/png"),
        ("a.x", "text/x-own; charset=utf-8"),
        ("a.b.tar.gz", "application/x-own"),
        ("a.css", "text/css; charset=latin1"),
        (".html", "application/octet-stream"),
        (".a.html", "text/html; charset=utf-8"),
        ("a.html ", "application/octet-stream"),
        ("a.text/html", "application/octet-stream"),
        ("a.b/html", "application/octet-stream"),
    ] {
        site.write(name, "");
        let target = format!("/{}", name.replace(' ', "%20"));
        assert_eq!(site.get(&target).field("Content-Type"), Some(expected), "{name}");
    }
}

/// The field lines of an answer that `static_header` adds.
fn added(answer: &Answer) -> Vec<&str> {
    let is_ours = |line: &&str| {
        ["ETag", "Last-Modified", "Accept-Ranges", "Content-Type"].contains(&line.split(':').next().unwrap())
    };
    let mut lines: Vec<_> = answer.fields.lines().filter(|line| !is_ours(line)).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn added_fields_replace_those_of_shorter_prefixes_and_of_the_server() {
    let fields = fields([
        ("", "X-All", "all"),
        ("", "Cache-Control", "no-cache"),
        ("/s/a", "cache-control", "max-age=1"),
        ("/s/a", "Vary", "Cookie"),
        ("/s/a/b", "Cache-Control", "max-age=2"),
        ("/s/a/b", "Cache-Control", "immutable"),
        ("/s/a/b/c.txt", "content-type", "text/odd"),
        ("/s/a/b/c.txt", "Content-Language", "de"),
    ]);
    let mut site = Site::with(Resolver::Kernel, Options { fields, precompressed: true, ..Options::default() });
    site.prefix = "/s";
    for name in ["a/c.txt", "a/b/c.txt", "a/b/c.txt.gz"] {
        site.write(name, "");
    }
    assert_eq!(added(&site.get("/s/a/c.txt")), ["Vary: Cookie", "X-All: all", "cache-control: max-age=1"]);
    let mut lines = vec![
        "Cache-Control: immutable",
        "Cache-Control: max-age=2",
        "Vary: Accept-Encoding",
        "Vary: Cookie",
        "X-All: all",
    ];
    let unchanged = site.ask("GET", "/s/a/b/c.txt", "If-None-Match: *\r\n");
    assert_eq!(added(&unchanged), lines, "without those that describe content");
    assert!(unchanged.fields.contains("ETag"));
    lines.extend(["Content-Language: de", "content-type: text/odd"]);
    lines.sort_unstable();
    assert_eq!(added(&site.get("/s/a/b/c.txt")), lines);
    assert!(!site.get("/s/nothing").fields.contains("X-All"), "only files have them");
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
