//! Media types by file extension.

use memchr::memmem;

/// `TYPE EXTENSION EXTENSION \n`, made by build.rs.
const TABLE: &str = include_str!(concat!(env!("OUT_DIR"), "/types.txt"));

/// The type of files with an unknown extension.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

/// The media type of a file, by its name. The extensions in `own` take precedence; they are in lower case and may have several
/// parts, such as `tar.gz`.
pub(crate) fn media_type<'a>(name: &[u8], own: &'a [(String, String)]) -> &'a str {
    let file = &name[memchr::memrchr(b'/', name).map_or(0, |slash| slash + 1)..];
    // `.html` is a name without an extension.
    let Ok(file) = std::str::from_utf8(file.get(1..).unwrap_or_default()) else { return UNKNOWN };
    let file = file.to_ascii_lowercase();
    let own = file.match_indices('.').find_map(|(dot, _)| {
        let extension = &file[dot + 1..];
        own.iter().find(|(name, _)| name == extension).map(|(_, media_type)| media_type.as_str())
    });
    own.or_else(|| known(file.rsplit_once('.')?.1)).unwrap_or(UNKNOWN)
}

/// Whether a path has the extension of a type that is not HTML.
pub(crate) fn names_other_than_page(path: &[u8]) -> bool {
    !matches!(media_type(path, &[]), UNKNOWN | "text/html" | "application/xhtml+xml")
}

/// Whether files of this name are compressed with gzip, and their media type is that of the decoded content: SVGZ (SVG 1.1
/// section 1.2). Others, such as `.tgz`, have a type of their own.
pub(crate) fn is_gzip_of_type(name: &[u8], media_type: &str) -> bool {
    let extension = name.len().checked_sub(b".svgz".len()).map(|dot| &name[dot..]);
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case(b".svgz")) && media_type == "image/svg+xml"
}

fn known(extension: &str) -> Option<&'static str> {
    if extension.is_empty() || !extension.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let found = memmem::find(TABLE.as_bytes(), format!(" {extension} ").as_bytes())?;
    let line = TABLE[..found].rfind('\n').map_or(0, |end| end + 1);
    TABLE[line..].split(' ').next()
}

/// Whether the type gets a charset parameter. JSON is always UTF-8 (RFC 8259), XML and SVG declare their encoding.
pub(crate) fn takes_charset(media_type: &str) -> bool {
    let is_text = media_type.starts_with("text/") || media_type == "application/javascript";
    is_text && !media_type.contains(';')
}
