//! Pages that reload themselves.

use super::{Answer, RESOLVERS, Stage};
use crate::folder::Resolver;
use crate::live_reload::LiveReload;
use crate::options::Options;

const SCRIPT: &str = "<script src=\"/live.js\"></script>";

fn stage(resolver: Resolver, options: Options) -> Stage {
    let live = LiveReload { before: "<script src=\"".into(), behind: "/live.js\"></script>".into() };
    let stage = Stage::with(resolver, Options { live: Some(live), precompressed: true, ..options });
    for (name, content) in [("page.html", "<p>page"), ("page.html.gz", "gzip"), ("empty.htm", ""), ("style.css", "p{}")]
    {
        stage.write(name, content);
    }
    stage.write("large.html", "x".repeat(100_000));
    stage
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
fn pages_have_something_behind_them_whatever_is_asked_of_them() {
    for resolver in RESOLVERS {
        let mut stage = stage(resolver, options());
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
                let answer = stage.ask("GET", target, fields);
                assert_eq!((answer.status, answer.field("Cache-Control")), (200, Some("no-cache")));
                assert!(is_live(&answer, content), "{target} {fields} {answer:?}");
            }
        }
    }
}

#[test]
fn what_is_not_shown_as_a_page_is_the_file() {
    for resolver in RESOLVERS {
        let mut stage = stage(resolver, options());
        let plain = stage.ask("GET", "/page.html", "Sec-Fetch-Dest: empty\r\n");
        assert_eq!((plain.text(), plain.field("Cache-Control")), ("<p>page", Some("no-cache")));
        let etag = plain.field("ETag").unwrap();
        let unchanged = stage.ask("GET", "/page.html", &format!("Hx-Request: true\r\nIf-None-Match: {etag}\r\n"));
        assert_eq!((unchanged.status, unchanged.field("Cache-Control")), (304, Some("no-cache")));
        assert_eq!(stage.ask("HEAD", "/page.html", "").field("ETag"), Some(etag));
        assert_eq!(stage.ask("GET", "/page.html", "X-Requested-With: a\r\nAccept-Encoding: gzip\r\n").text(), "gzip");
        let style = stage.get("/style.css");
        assert_eq!((style.text(), style.field("Cache-Control")), ("p{}", Some("no-cache")));
        assert_eq!(stage.ask("GET", "/style.css", "Range: bytes=0-1\r\n").text(), "p{");
        assert_eq!(stage.status("/nothing"), 404);
    }
}

#[test]
fn settings_of_files_hold_but_for_caches() {
    for resolver in RESOLVERS {
        let field = |path: &str, name: &str, value: &str| (path.to_owned(), name.to_owned(), value.to_owned());
        let fields = vec![
            field("", "Cache-Control", "max-age=9"),
            field("", "X-Own", "yes"),
            field("/style.css", "Content-Type", "Text/HTML ; charset=latin-1"),
            field("/page.html", "Content-Type", "text/html5"),
        ];
        let mut stage = stage(resolver, Options { fields, not_found: "empty.htm".into(), ..options() });
        let style = stage.get("/style.css");
        assert!(is_live(&style, "p{}") && style.field("X-Own") == Some("yes"), "{style:?}");
        assert_eq!(style.field("Cache-Control"), Some("no-cache"));
        assert_eq!(stage.get("/page.html").text(), "<p>page");
        let missing = stage.get("/nothing");
        assert!(missing.status == 404 && is_live(&missing, ""), "{missing:?}");
        let mut wide = self::stage(resolver, Options { charset: "UTF-16".into(), ..options() });
        assert_eq!(wide.get("/page.html").text(), "<p>page");
    }
}
