//! The live-reload script in HTML pages.

use super::{Answer, RESOLVERS, Site};
use crate::folder::Resolver;
use crate::live_reload::LiveReload;
use crate::options::Options;

const SCRIPT: &str = "<script src=\"/live.js\"></script>";

fn site(resolver: Resolver, options: Options) -> Site {
    let live = LiveReload { before: "<script src=\"".into(), behind: "/live.js\"></script>".into() };
    let site = Site::with(resolver, Options { live: Some(live), precompressed: true, ..options });
    for (name, content) in [("page.html", "<p>page"), ("page.html.gz", "gzip"), ("empty.htm", ""), ("style.css", "p{}")]
    {
        site.write(name, content);
    }
    site.write("large.html", "x".repeat(100_000));
    site
}

fn options() -> Options {
    Options { index: "page.html".into(), charset: "utf-8".into(), ..Options::default() }
}

fn is_live(answer: &Answer, content: &str) -> bool {
    let validators = [answer.field("ETag"), answer.field("Last-Modified"), answer.field("Accept-Ranges")];
    let is_whole = answer.field("Content-Encoding").is_none() && validators == [None; 3];
    is_whole && answer.text().strip_suffix(SCRIPT) == Some(content)
}

#[test]
fn pages_end_with_the_script_whatever_the_request_fields() {
    for resolver in RESOLVERS {
        let mut site = site(resolver, options());
        let large = "x".repeat(100_000);
        for (target, content) in
            [("/page.html", "<p>page"), ("/", "<p>page"), ("/empty.htm", ""), ("/large.html", &large)]
        {
            for fields in [
                "",
                "Accept-Encoding: gzip\r\n",
                "Range: bytes=1-2\r\n",
                "Range: bytes=1-2,4-5\r\n",
                "If-None-Match: *\r\n",
                "If-Match: \"other\"\r\n",
                "Sec-Fetch-Dest: document\r\n",
                "Sec-Fetch-Dest: empty\r\nSec-Purpose: prefetch\r\n",
            ] {
                let answer = site.ask("GET", target, fields);
                assert_eq!((answer.status, answer.field("Cache-Control")), (200, Some("no-cache")));
                assert!(is_live(&answer, content), "{target} {fields} {answer:?}");
            }
        }
    }
}

#[test]
fn a_file_not_shown_as_a_page_is_unchanged() {
    for resolver in RESOLVERS {
        let mut site = site(resolver, options());
        let plain = site.ask("GET", "/page.html", "Sec-Fetch-Dest: empty\r\n");
        assert_eq!((plain.text(), plain.field("Cache-Control")), ("<p>page", Some("no-cache")));
        let etag = plain.field("ETag").unwrap();
        let unchanged = site.ask("GET", "/page.html", &format!("Hx-Request: true\r\nIf-None-Match: {etag}\r\n"));
        assert_eq!((unchanged.status, unchanged.field("Cache-Control")), (304, Some("no-cache")));
        assert_eq!(site.ask("HEAD", "/page.html", "").field("ETag"), Some(etag));
        assert_eq!(site.ask("GET", "/page.html", "X-Requested-With: a\r\nAccept-Encoding: gzip\r\n").text(), "gzip");
        let style = site.get("/style.css");
        assert_eq!((style.text(), style.field("Cache-Control")), ("p{}", Some("no-cache")));
        assert_eq!(site.ask("GET", "/style.css", "Range: bytes=0-1\r\n").text(), "p{");
        assert_eq!(site.status("/nothing"), 404);
    }
}

#[test]
fn added_fields_apply_except_cache_control() {
    for resolver in RESOLVERS {
        let field = |path: &str, name: &str, value: &str| (path.to_owned(), name.to_owned(), value.to_owned());
        let fields = vec![
            field("", "Cache-Control", "max-age=9"),
            field("", "X-Own", "yes"),
            field("/style.css", "Content-Type", "Text/HTML ; charset=latin-1"),
            field("/page.html", "Content-Type", "text/html5"),
        ];
        let mut site = site(resolver, Options { fields, not_found: "empty.htm".into(), ..options() });
        let style = site.get("/style.css");
        assert!(is_live(&style, "p{}") && style.field("X-Own") == Some("yes"), "{style:?}");
        assert_eq!(style.field("Cache-Control"), Some("no-cache"));
        assert_eq!(site.get("/page.html").text(), "<p>page");
        let missing = site.get("/nothing");
        assert!(missing.status == 404 && is_live(&missing, ""), "{missing:?}");
        let mut wide = self::site(resolver, Options { charset: "UTF-16".into(), ..options() });
        assert_eq!(wide.get("/page.html").text(), "<p>page");
    }
}
