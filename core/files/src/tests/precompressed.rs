//! Tests of compressed copies of files: their entity tags, and their changes.
//!
//! `tests/cases/static/codings.txt` has the rest.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use super::{RESOLVERS, Site};
use crate::folder::Resolver;
use crate::options::Options;

const GZIP: &str = "Accept-Encoding: gzip\r\n";

fn site(resolver: Resolver) -> Site {
    Site::with(resolver, Options { precompressed: true, ..Options::default() })
}

fn set_modified(path: &Path, seconds: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

#[test]
fn copies_as_old_and_as_long_as_their_file_have_other_tags() {
    let mut site = site(Resolver::Kernel);
    for name in ["page.html", "page.html.br", "page.html.zst", "page.html.gz"] {
        site.write(name, "content");
        set_modified(&site.path(name), 1000);
    }
    let mut tags: Vec<_> = ["", "gzip", "br", "zstd"]
        .map(|coding| {
            site.ask("GET", "/page.html", &format!("Accept-Encoding: {coding}\r\n")).field("ETag").map(String::from)
        })
        .into();
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 4, "{tags:?}");
}

#[test]
fn an_svgz_with_a_type_of_its_own_is_any_other_file() {
    let types = vec![("svgz".into(), "application/x-own".into())];
    let mut site = Site::with(Resolver::Kernel, Options { precompressed: true, types, ..Options::default() });
    site.write("a.svgz", "gzip");
    assert_eq!(site.get("/a.svgz").field("Content-Encoding"), None);
    site.write("a.svgz.gz", "twice");
    assert_eq!(site.ask("GET", "/a.svgz", GZIP).field("Content-Encoding"), Some("gzip"));
}

#[test]
fn a_copy_that_appears_changes_or_is_removed_counts_in_the_next_poll() {
    for resolver in RESOLVERS {
        let mut site = site(resolver);
        site.write("a/page.html", "as it is");
        assert_eq!(site.ask("GET", "/a/page.html", GZIP).field("Vary"), None);
        site.write("a/page.html.gz", "one");
        assert_eq!(site.ask("GET", "/a/page.html", GZIP).text(), "one");
        site.write("a/page.html.gz", "three");
        assert_eq!(site.ask("GET", "/a/page.html", GZIP).text(), "three", "the folder has not changed");
        fs::remove_file(site.path("a/page.html.gz")).unwrap();
        let answer = site.ask("GET", "/a/page.html", GZIP);
        assert_eq!((answer.text(), answer.field("Vary")), ("as it is", None));
    }
}

#[test]
fn changes_of_other_files_in_the_folder_do_not_evict_a_file() {
    let mut site = site(Resolver::Kernel);
    site.write("a/page.html", "as it is");
    // The folder changed so recently that its next change may not show in its times; the file did not.
    let settled = site.now;
    set_modified(&site.path("a/page.html"), settled - 10_000);
    for number in 0..3 {
        site.write(&format!("a/{number}"), "");
        site.ask("GET", "/a/page.html", GZIP);
    }
    site.may_wait = false;
    assert_eq!(site.ask("GET", "/a/page.html", GZIP).text(), "as it is", "other files have changed");
    site.may_wait = true;
    site.write("a/page.html.gz", "copy");
    assert_eq!(site.ask("GET", "/a/page.html", GZIP).text(), "copy");
}
