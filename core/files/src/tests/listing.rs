//! Folders as pages.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{RESOLVERS, Stage};
use crate::Cache;
use crate::folder::Resolver;
use crate::options::Options;

fn stage(resolver: Resolver) -> Stage {
    Stage::with(resolver, Options { listing: true, index: "index.html".into(), ..Options::default() })
}

/// The targets of the links to files, in order.
fn links(page: &str) -> Vec<&str> {
    let rows = page.split("<td><a href=\"").skip(1);
    rows.map(|row| row.split('"').next().unwrap()).collect()
}

#[test]
fn names_are_escaped_and_links_lead_to_files() {
    for resolver in RESOLVERS {
        let mut stage = stage(resolver);
        fs::create_dir_all(stage.path("a&b/sub")).unwrap();
        let names: [&[u8]; 8] =
            [b"<script>", b"a:b", b"\"'", b"100%", b"sp ace?#", "\u{e9}".as_bytes(), b"\xff\t", b"javascript:alert(1)"];
        // Two that cannot be asked for.
        for name in names.iter().chain(&[&b"line\nend"[..], b"back\\slash"]) {
            fs::write(stage.path("a&b").join(OsStr::from_bytes(name)), "x").unwrap();
        }
        let answer = stage.get("/a%26b/");
        assert_eq!((answer.status, answer.field("Cache-Control")), (200, Some("no-cache")));
        assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
        let page = answer.text();
        assert!(page.contains("<h1>/a&amp;b/</h1>") && page.contains("&lt;script&gt;"));
        assert!(!page.contains("<script>") && !page.contains("\"'") && !page.contains("href=\"javascript:"));
        let links = links(page);
        assert_eq!(links.len(), 2 + names.len());
        assert_eq!(links[..2], ["../", "sub/"]);
        let links: Vec<String> = links[2..].iter().map(|link| format!("/a%26b/{link}")).collect();
        for link in links {
            assert_eq!(stage.status(&link), 200, "{link}");
        }
    }
}

#[test]
fn only_what_is_served_is_listed() {
    for resolver in RESOLVERS {
        let mut stage = stage(resolver);
        fs::write(stage.around.path().join("secret"), "secret").unwrap();
        stage.write("file", "");
        stage.write("folder/index.html", "");
        stage.write(".hidden", "");
        stage.link("../secret", "escape");
        stage.link("/dev/null", "device");
        stage.link("nothing", "dangling");
        stage.link("file", "link");
        stage.link("folder", "other");
        let _listener = std::os::unix::net::UnixListener::bind(stage.path("socket")).unwrap();
        let answer = stage.get("/");
        assert_eq!(links(answer.text()), ["folder/", "other/", "file", "link"], "{resolver:?}");
        assert!(!answer.text().contains("../"), "there is nothing above");
        // An index is shown instead.
        assert_eq!(stage.get("/folder/").text(), "");
    }
}

#[test]
fn a_page_is_ordered_as_it_is_asked_for() {
    let mut stage = stage(Resolver::Kernel);
    for (name, length, modified) in [("b", 3000, 3), ("A", 2000, 9), ("c", 1000, 5)] {
        stage.write(name, vec![0; length]);
        let file = fs::File::options().write(true).open(stage.path(name)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(modified * 1_000_000)).unwrap();
    }
    fs::create_dir(stage.path("z")).unwrap();
    for (query, order) in [
        ("", ["A", "b", "c"]),
        ("?sort=name&order=desc", ["c", "b", "A"]),
        ("?sort=size", ["c", "A", "b"]),
        ("?sort=size&order=desc", ["b", "A", "c"]),
        ("?order=asc&sort=time", ["b", "c", "A"]),
        ("?sort=time&order=desc", ["A", "c", "b"]),
        ("?sort=%3Cscript%3E&order=<script>", ["A", "b", "c"]),
    ] {
        let answer = stage.get(&format!("/{query}"));
        assert_eq!(links(answer.text()), [&["z/"], &order[..]].concat(), "{query}");
        assert!(!answer.text().contains("script"));
    }
    let page = stage.get("/?sort=size").content;
    let page = String::from_utf8(page).unwrap();
    for piece in [
        "<th aria-sort=\"ascending\"><a href=\"?sort=size&amp;order=desc\">",
        "<th><a href=\"?sort=name&amp;order=asc\">",
        "<td>2.9 KiB</td><td>04 Feb 1970 17:20</td>",
        "<meta name=\"viewport\"",
    ] {
        assert!(page.contains(piece), "{piece} {page}");
    }
}

#[test]
fn a_page_has_an_end() {
    let mut stage = stage(Resolver::Kernel);
    for number in 0..10_000 {
        fs::File::create(stage.path(&number.to_string())).unwrap();
    }
    assert!(!stage.get("/").text().contains("There are more"));
    fs::File::create(stage.path("one-more")).unwrap();
    let answer = stage.get("/");
    assert!(answer.text().contains("There are more"));
    assert_eq!(links(answer.text()).len(), 10_000);
}

#[test]
fn a_folder_without_a_slash_is_redirected() {
    let mut stage = stage(Resolver::Kernel);
    fs::create_dir(stage.path("empty")).unwrap();
    assert_eq!(stage.get("/empty?sort=size").field("Location"), Some("/empty/?sort=size"));
    assert_eq!(links(stage.get("/empty/").text()), ["../"]);
    stage.prefix = "/s";
    assert_eq!(stage.get("/s").field("Location"), Some("/s/"));
    assert!(stage.get("/s/").text().contains("<h1>/s/</h1>"));
}

/// Waits until the clock of the file system has gone on since the published folder changed.
fn wait_for_tick(stage: &Stage) {
    let changed = fs::metadata(stage.path("")).unwrap().modified().unwrap();
    let probe = stage.around.path().join("probe");
    while {
        fs::write(&probe, "").unwrap();
        fs::metadata(&probe).unwrap().modified().unwrap() <= changed
    } {}
}

#[test]
fn a_listing_is_kept_for_the_rest_of_its_second() {
    for resolver in RESOLVERS {
        let mut stage = stage(resolver);
        stage.write("one", "x");
        stage.write("sub/two", "x");
        assert!(stage.get("/").text().contains("<td>1 B</td>"));
        // The folder itself does not change.
        stage.write("one", "xx");
        assert!(stage.get("/").text().contains("<td>1 B</td>"));
        assert!(stage.get("/?sort=size").text().contains("<td>2 B</td>"), "another order is another page");
        assert!(stage.get("/sub/").text().contains("<td>1 B</td>"), "another folder is another page");
        assert_eq!(stage.ask("HEAD", "/", ""), stage.get("/"));
        stage.now += 1;
        assert!(stage.get("/").text().contains("<td>2 B</td>"));
        wait_for_tick(&stage);
        stage.write("three", "xxx");
        assert!(stage.get("/").text().contains("<td>3 B</td>"));
        wait_for_tick(&stage);
        fs::remove_file(stage.path("one")).unwrap();
        assert!(!stage.get("/").text().contains("<td>2 B</td>"));
    }
}

#[test]
fn a_listing_of_a_folder_that_has_just_changed_is_not_kept() {
    let mut stage = stage(Resolver::Kernel);
    stage.now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    stage.write("one", "x");
    assert!(stage.get("/").text().contains("<td>1 B</td>"));
    stage.write("one", "xx");
    assert!(stage.get("/").text().contains("<td>2 B</td>"));
}

#[test]
fn listings_are_kept_within_the_memory_of_the_cache() {
    let options = Options { listing: true, ..Options::default() };
    let stage_of = |most| {
        let stage = Stage::in_cache(Resolver::Kernel, options.clone(), Arc::new(Cache::new(most)));
        stage.write("one", "x");
        stage.write("sub/two", "x");
        stage
    };
    // Room for two pages of about this length.
    let length = stage_of(0).get("/").content.len() as u64;
    let mut stage = stage_of(length * 5 / 2);
    stage.get("/");
    stage.get("/sub/");
    stage.get("/?sort=size");
    stage.write("one", "xx");
    assert!(stage.get("/").text().contains("<td>1 B</td>"));
    assert!(stage.get("/?sort=size").text().contains("<td>2 B</td>"), "no room");
    // In the next second there is.
    stage.now += 1;
    stage.get("/?sort=size");
    stage.write("one", "xxx");
    assert!(stage.get("/?sort=size").text().contains("<td>2 B</td>"));
}
