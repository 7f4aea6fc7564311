//! Build script: writes the media types of the crate `mime_guess` as one text constant.
//!
//! The dynamic linker would relocate the pointers of the crate's own table in every process, so that its pages would not be
//! shared. A text needs no relocation, and all processes share its pages.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs, io};

/// Types that the crate does not have, or that have changed since.
const NEWER: [(&str, &str); 8] = [
    ("br", "application/octet-stream"),
    // RFC 9239
    ("cjs", "text/javascript"),
    ("mjs", "text/javascript"),
    // Source maps (ECMA-426)
    ("map", "application/json"),
    ("gpx", "application/gpx+xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    // RFC 8878
    ("zst", "application/zstd"),
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut types = BTreeMap::new();
    for &extension in mime_guess::get_mime_extensions_str("*/*").unwrap_or_default() {
        if let Some(media_type) = mime_guess::from_ext(extension).first_raw() {
            types.insert(extension.to_ascii_lowercase(), media_type);
        }
    }
    types.extend(NEWER.map(|(extension, media_type)| (extension.to_owned(), media_type)));
    let mut extensions = BTreeMap::<&str, Vec<&str>>::new();
    for (extension, media_type) in &types {
        extensions.entry(media_type).or_default().push(extension);
    }
    // `TYPE EXTENSION EXTENSION \n`: each extension is between two spaces.
    let lines = extensions.iter().map(|(media_type, extensions)| format!("{media_type} {} \n", extensions.join(" ")));
    let folder = env::var_os("OUT_DIR").unwrap_or_default();
    fs::write(Path::new(&folder).join("types.txt"), lines.collect::<String>())
}
