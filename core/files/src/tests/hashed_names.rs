//! Names that hold a hash of the content, and the `Cache-Control` of such files.

use super::Site;
use crate::folder::Resolver;
use crate::hashed_name::is_hashed;
use crate::options::Options;

#[test]
fn hashes_of_build_tools() {
    for name in [
        "admin/css/base.9f65f5b6d2a9.css", // Django, WhiteNoise
        "main.3f2a1bc9.js",                // webpack with [contenthash:8], Parcel
        "main.3f2a1bc9.chunk.js.map",      // create-react-app
        "vendors.0f3a5b7c9d1e2f4a6b8c.js", // webpack, [contenthash]
        "app-0d1f2a3b.css",                // Propshaft, Rollup with hashCharacters: "hex"
        "app.3f2a1bc9.js.gz",
        "a-b.c-1234567f.d",
    ] {
        assert!(is_hashed(name.as_bytes()), "{name}");
        assert!(is_hashed(format!("/static/{name}").as_bytes()), "{name}");
    }
    let sha_256 = format!("application-{}1.css", "0123456789abcde".repeat(4));
    assert!(!is_hashed(sha_256.replace('-', "-0000").as_bytes()), "longer than SHA-256");
    assert!(is_hashed(sha_256.as_bytes()), "Sprockets");
}

#[test]
fn other_names() {
    for name in [
        "",
        "app.js",
        "3f2a1bc9",
        "app.3f2a1bc9",   // no extension
        "3f2a1bc9.js",    // no name
        ".3f2a1bc9.js",   // a hidden file
        "app.3f2a1b9.js", // seven digits
        "app_3f2a1bc9.js",
        "app3f2a1bc9.js",
        "app.3F2A1BC9.js",
        "report-20261123.pdf", // a date
        "log.20261123181500.txt",
        "the-defaced.beefaded.txt", // words
        "jquery-selector.js",
        "jquery-3.6.0.min.js",
        "index-BxS9Y2gQ.js", // Vite, which may be a word
        "photo-1024x768.jpg",
        "user-550e8400-e29b-41d4-a716-44665544abcd.png", // a UUID
        "app.3f2a1bc9.d/other",
    ] {
        assert!(!is_hashed(name.as_bytes()), "{name}");
    }
}

#[test]
fn files_with_hashed_names_are_immutable_below_the_prefixes() {
    let fields = [("/s", "cache-control", "max-age=300"), ("/s", "X-All", "all")];
    let options = Options {
        fields: fields.map(|(prefix, name, value)| (prefix.into(), name.into(), value.into())).into(),
        immutable: vec!["/s/a".into(), "/s/b/app.3f2a1bc9.js".into()],
        precompressed: true,
        ..Options::default()
    };
    let mut site = Site::with(Resolver::Kernel, options);
    site.prefix = "/s";
    let names = ["a/app.3f2a1bc9.js", "a/app.3f2a1bc9.js.gz", "a/app.js", "ab/app.3f2a1bc9.js", "b/app.3f2a1bc9.js"];
    names.iter().for_each(|name| site.write(name, ""));
    let mut cache_control = |name: &str, fields: &str| {
        let answer = site.ask("GET", &format!("/s/{name}"), fields);
        assert_eq!(answer.field("X-All"), Some("all"));
        let lines: Vec<_> = answer.fields.lines().filter(|line| line.to_lowercase().starts_with("cache-c")).collect();
        lines.join(" | ")
    };
    let immutable = "Cache-Control: public, max-age=31536000, immutable";
    let plain = "cache-control: max-age=300";
    for (name, fields, expected) in [
        ("a/app.3f2a1bc9.js", "", immutable),
        ("a/app.3f2a1bc9.js", "Accept-Encoding: gzip\r\n", immutable),
        ("a/app.3f2a1bc9.js", "If-None-Match: *\r\n", immutable),
        ("a/app.js", "", plain),
        ("ab/app.3f2a1bc9.js", "", plain),
        ("b/app.3f2a1bc9.js", "", immutable),
    ] {
        assert_eq!(cache_control(name, fields), expected, "{name} {fields}");
    }
    assert_eq!(site.get("/s/a/none.3f2a1bc9.js").field("Cache-Control"), None);
}
