//! Compressed copies that stand in for a file.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use super::{RESOLVERS, Stage};
use crate::folder::Resolver;
use crate::options::Options;

const GZIP: &str = "Accept-Encoding: gzip\r\n";
const ANY: &str = "Accept-Encoding: gzip, br, zstd\r\n";

fn stage(resolver: Resolver) -> Stage {
    Stage::with(resolver, Options { precompressed: true, index: "index.html".into(), ..Options::default() })
}

fn set_modified(path: &Path, seconds: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

#[test]
fn a_copy_stands_in_for_a_file() {
    for resolver in RESOLVERS {
        let mut stage = stage(resolver);
        stage.write("page.html", "as it is");
        for (extension, content) in [("br", "brotli"), ("zst", "zstandard"), ("gz", "gzipped.")] {
            stage.write(&format!("page.html.{extension}"), content);
        }
        let mut tags = Vec::new();
        for (fields, coding, content) in [
            ("", None, "as it is"),
            ("Accept-Encoding: gzip\r\n", Some("gzip"), "gzipped."),
            ("Accept-Encoding: zstd\r\n", Some("zstd"), "zstandard"),
            (ANY, Some("br"), "brotli"),
            ("Accept-Encoding: br;q=0.1, gzip\r\n", Some("gzip"), "gzipped."),
            ("Accept-Encoding: deflate\r\n", None, "as it is"),
        ] {
            let answer = stage.ask("GET", "/page.html", fields);
            assert_eq!((answer.text(), answer.field("Content-Encoding")), (content, coding), "{fields}");
            assert_eq!(answer.field("Vary"), Some("Accept-Encoding"));
            assert_eq!(answer.field("Content-Type"), Some("text/html"));
            tags.push(answer.field("ETag").unwrap().to_owned());
            let tag = tags.last().unwrap();
            let unchanged = stage.ask("GET", "/page.html", &format!("{fields}If-None-Match: {tag}\r\n"));
            assert_eq!((unchanged.status, unchanged.field("ETag")), (304, Some(tag.as_str())));
            assert_eq!((unchanged.field("Vary"), unchanged.field("Content-Encoding")), (Some("Accept-Encoding"), None));
            let part = stage.ask("GET", "/page.html", &format!("{fields}Range: bytes=1-2\r\n"));
            assert_eq!((part.status, part.text()), (206, &content[1..3]), "a part of what is selected");
            assert_eq!(part.field("Content-Encoding"), coding);
        }
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 4, "each has a tag of its own: {tags:?}");
    }
}

#[test]
fn a_copy_that_comes_or_goes_counts_in_the_next_look() {
    for resolver in RESOLVERS {
        let mut stage = stage(resolver);
        stage.write("a/page.html", "as it is");
        assert_eq!(stage.ask("GET", "/a/page.html", GZIP).field("Vary"), None);
        stage.write("a/page.html.gz", "one");
        assert_eq!(stage.ask("GET", "/a/page.html", GZIP).text(), "one");
        stage.write("a/page.html.gz", "three");
        assert_eq!(stage.ask("GET", "/a/page.html", GZIP).text(), "three", "the folder has not changed");
        fs::remove_file(stage.path("a/page.html.gz")).unwrap();
        let answer = stage.ask("GET", "/a/page.html", GZIP);
        assert_eq!((answer.text(), answer.field("Vary")), ("as it is", None));
    }
}

#[test]
fn a_folder_in_which_something_happens_all_the_time_is_looked_at_closer() {
    let mut stage = stage(Resolver::Kernel);
    stage.write("a/page.html", "as it is");
    // The folder is too young to be trusted, the file is not.
    let settled = stage.now;
    set_modified(&stage.path("a/page.html"), settled - 10_000);
    for number in 0..3 {
        stage.write(&format!("a/{number}"), "");
        stage.ask("GET", "/a/page.html", GZIP);
    }
    stage.may_wait = false;
    assert_eq!(stage.ask("GET", "/a/page.html", GZIP).text(), "as it is", "the other files are nothing to it");
    stage.may_wait = true;
    stage.write("a/page.html.gz", "copy");
    assert_eq!(stage.ask("GET", "/a/page.html", GZIP).text(), "copy");
}

#[test]
fn a_copy_that_is_older_is_left_alone() {
    let mut stage = stage(Resolver::Kernel);
    stage.write("page.html", "as it is");
    stage.write("page.html.gz", "copy");
    for (file, copy, expected) in
        [(2000, 1999, "as it is"), (2000, 2000, "copy"), (2001, 2000, "as it is"), (2001, 2002, "copy")]
    {
        set_modified(&stage.path("page.html"), file);
        set_modified(&stage.path("page.html.gz"), copy);
        let answer = stage.ask("GET", "/page.html", GZIP);
        assert_eq!(answer.text(), expected, "{file} {copy}");
        assert_eq!(answer.field("Vary").is_some(), expected == "copy");
    }
}

#[test]
fn only_files_below_the_folder_are_copies() {
    for resolver in RESOLVERS {
        let mut stage = stage(resolver);
        fs::write(stage.around.path().join("secret"), "secret").unwrap();
        stage.write("page.html", "as it is");
        stage.link("../secret", "page.html.gz");
        fs::create_dir(stage.path("page.html.br")).unwrap();
        let answer = stage.ask("GET", "/page.html", ANY);
        assert_eq!((answer.text(), answer.field("Vary")), ("as it is", None), "{resolver:?}");
        // A copy without its file is only itself.
        stage.write("alone.html.gz", "copy");
        assert_eq!(stage.ask("GET", "/alone.html", GZIP).status, 404);
        assert_eq!(stage.ask("GET", "/alone.html.gz", GZIP).field("Content-Type"), Some("application/gzip"));
    }
}

#[test]
fn an_index_has_copies_too() {
    let mut stage = stage(Resolver::Kernel);
    stage.write("index.html", "as it is");
    stage.write("index.html.gz", "copy");
    for _ in 0..2 {
        assert_eq!(stage.ask("GET", "/", GZIP).text(), "copy");
        assert_eq!(stage.ask("GET", "/index.html", "").text(), "as it is");
    }
}

#[test]
fn the_name_of_a_copy_may_be_too_long() {
    let mut stage = stage(Resolver::Kernel);
    let name = "a".repeat(255);
    stage.write(&name, "long");
    for _ in 0..2 {
        assert_eq!(stage.ask("GET", &format!("/{name}"), ANY).text(), "long");
    }
}
