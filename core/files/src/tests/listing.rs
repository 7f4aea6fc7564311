//! Directory listings.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{RESOLVERS, Site};
use crate::Cache;
use crate::folder::Resolver;
use crate::options::Options;

fn site(resolver: Resolver) -> Site {
    Site::with(resolver, Options { listing: true, index: "index.html".into(), ..Options::default() })
}

/// The targets of the links to files, in order.
fn links(page: &str) -> Vec<&str> {
    let rows = page.split("<td><a href=\"").skip(1);
    rows.map(|row| row.split('"').next().unwrap()).collect()
}

#[test]
fn names_are_escaped_and_links_lead_to_files() {
    for resolver in RESOLVERS {
        let mut site = site(resolver);
        fs::create_dir_all(site.path("a&b/sub")).unwrap();
        let names: [&[u8]; 8] =
            [b"<script>", b"a:b", b"\"'", b"100%", b"sp ace?#", "\u{e9}".as_bytes(), b"\xff\t", b"javascript:alert(1)"];
        // Two names that no request can hold.
        for name in names.iter().chain(&[&b"line\nend"[..], b"back\\slash"]) {
            fs::write(site.path("a&b").join(OsStr::from_bytes(name)), "x").unwrap();
        }
        let answer = site.get("/a%26b/");
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
            assert_eq!(site.status(&link), 200, "{link}");
        }
    }
}

#[test]
fn only_names_that_are_served_are_listed() {
    for resolver in RESOLVERS {
        let mut site = site(resolver);
        fs::write(site.around.path().join("secret"), "secret").unwrap();
        site.write("file", "");
        site.write("folder/index.html", "");
        site.write(".hidden", "");
        site.link("../secret", "escape");
        site.link("/dev/null", "device");
        site.link("nothing", "dangling");
        site.link("file", "link");
        site.link("folder", "other");
        let _listener = std::os::unix::net::UnixListener::bind(site.path("socket")).unwrap();
        let answer = site.get("/");
        assert_eq!(links(answer.text()), ["folder/", "other/", "file", "link"], "{resolver:?}");
        assert!(!answer.text().contains("../"), "the top has no parent");
        // The index replaces the listing.
        assert_eq!(site.get("/folder/").text(), "");
    }
}

#[test]
fn the_query_selects_the_order() {
    let mut site = site(Resolver::Kernel);
    for (name, length, modified) in [("b", 3000, 3), ("A", 2000, 9), ("c", 1000, 5)] {
        site.write(name, vec![0; length]);
        let file = fs::File::options().write(true).open(site.path(name)).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(modified * 1_000_000)).unwrap();
    }
    fs::create_dir(site.path("z")).unwrap();
    for (query, order) in [
        ("", ["A", "b", "c"]),
        ("?sort=name&order=desc", ["c", "b", "A"]),
        ("?sort=size", ["c", "A", "b"]),
        ("?sort=size&order=desc", ["b", "A", "c"]),
        ("?order=asc&sort=time", ["b", "c", "A"]),
        ("?sort=time&order=desc", ["A", "c", "b"]),
        ("?sort=%3Cscript%3E&order=<script>", ["A", "b", "c"]),
    ] {
        let answer = site.get(&format!("/{query}"));
        assert_eq!(links(answer.text()), [&["z/"], &order[..]].concat(), "{query}");
        assert!(!answer.text().contains("script"));
    }
    let page = site.get("/?sort=size").content;
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
fn at_most_10_000_names_are_listed() {
    let mut site = site(Resolver::Kernel);
    for number in 0..10_000 {
        fs::File::create(site.path(&number.to_string())).unwrap();
    }
    assert!(!site.get("/").text().contains("There are more"));
    fs::File::create(site.path("one-more")).unwrap();
    let answer = site.get("/");
    assert!(answer.text().contains("There are more"));
    assert_eq!(links(answer.text()).len(), 10_000);
}

#[test]
fn a_listing_shows_the_prefix_of_its_route() {
    let mut site = site(Resolver::Kernel);
    site.prefix = "/s";
    assert_eq!(site.get("/s?sort=size").field("Location"), Some("/s/?sort=size"));
    assert!(site.get("/s/").text().contains("<h1>/s/</h1>"));
}

/// Waits until the clock of the file system has advanced since the published folder changed.
fn wait_for_tick(site: &Site) {
    let changed = fs::metadata(site.path("")).unwrap().modified().unwrap();
    let probe = site.around.path().join("probe");
    while {
        fs::write(&probe, "").unwrap();
        fs::metadata(&probe).unwrap().modified().unwrap() <= changed
    } {}
}

#[test]
fn a_listing_is_cached_for_the_rest_of_its_second() {
    for resolver in RESOLVERS {
        let mut site = site(resolver);
        site.write("one", "x");
        site.write("sub/two", "x");
        assert!(site.get("/").text().contains("<td>1 B</td>"));
        // The folder itself does not change.
        site.write("one", "xx");
        assert!(site.get("/").text().contains("<td>1 B</td>"));
        assert!(site.get("/?sort=size").text().contains("<td>2 B</td>"), "another order is another page");
        assert!(site.get("/sub/").text().contains("<td>1 B</td>"), "another folder is another page");
        assert_eq!(site.ask("HEAD", "/", ""), site.get("/"));
        site.now += 1;
        assert!(site.get("/").text().contains("<td>2 B</td>"));
        wait_for_tick(&site);
        site.write("three", "xxx");
        assert!(site.get("/").text().contains("<td>3 B</td>"));
        wait_for_tick(&site);
        fs::remove_file(site.path("one")).unwrap();
        assert!(!site.get("/").text().contains("<td>2 B</td>"));
    }
}

#[test]
fn a_listing_of_a_folder_that_has_just_changed_is_not_cached() {
    let mut site = site(Resolver::Kernel);
    site.now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    site.write("one", "x");
    assert!(site.get("/").text().contains("<td>1 B</td>"));
    site.write("one", "xx");
    assert!(site.get("/").text().contains("<td>2 B</td>"));
}

#[test]
fn listings_fit_into_the_memory_of_the_cache() {
    let options = Options { listing: true, ..Options::default() };
    let site_of = |most| {
        let site = Site::in_cache(Resolver::Kernel, options.clone(), Arc::new(Cache::new(most)));
        site.write("one", "x");
        site.write("sub/two", "x");
        site
    };
    // Room for two pages of about this length.
    let length = site_of(0).get("/").content.len() as u64;
    let mut site = site_of(length * 5 / 2);
    site.get("/");
    site.get("/sub/");
    site.get("/?sort=size");
    site.write("one", "xx");
    assert!(site.get("/").text().contains("<td>1 B</td>"));
    assert!(site.get("/?sort=size").text().contains("<td>2 B</td>"), "no room");
    // In the next second there is.
    site.now += 1;
    site.get("/?sort=size");
    site.write("one", "xxx");
    assert!(site.get("/?sort=size").text().contains("<td>2 B</td>"));
}
