//! Media types.

use memchr::memmem;

/// `TYPE EXTENSION EXTENSION \n`, made by build.rs.
const TABLE: &str = include_str!(concat!(env!("OUT_DIR"), "/types.txt"));

/// What nobody knows better.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

/// The media type of a file, by its name. `own` are extensions that are looked for first, in lower case; they may consist of
/// several, as in `tar.gz`.
pub(crate) fn media_type<'a>(name: &[u8], own: &'a [(String, String)]) -> &'a str {
    let file = &name[memchr::memrchr(b'/', name).map_or(0, |slash| slash + 1)..];
    // What begins with a dot is a name, not an extension.
    let Ok(file) = std::str::from_utf8(file.get(1..).unwrap_or_default()) else { return UNKNOWN };
    let file = file.to_ascii_lowercase();
    let own = file.match_indices('.').find_map(|(dot, _)| {
        let extension = &file[dot + 1..];
        own.iter().find(|(name, _)| name == extension).map(|(_, media_type)| media_type.as_str())
    });
    own.or_else(|| known(file.rsplit_once('.')?.1)).unwrap_or(UNKNOWN)
}

fn known(extension: &str) -> Option<&'static str> {
    if extension.is_empty() || !extension.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let found = memmem::find(TABLE.as_bytes(), format!(" {extension} ").as_bytes())?;
    let line = TABLE[..found].rfind('\n').map_or(0, |end| end + 1);
    TABLE[line..].split(' ').next()
}

/// Whether the octets of such a file are characters in a coding that is worth telling. JSON is always UTF-8 (RFC 8259), XML and
/// SVG say it themselves.
pub(crate) fn takes_charset(media_type: &str) -> bool {
    let is_text = media_type.starts_with("text/") || media_type == "application/javascript";
    is_text && !media_type.contains(';')
}
