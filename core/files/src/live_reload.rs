//! Live reload for development: a script is appended to HTML pages.

use poorhttp_http::Head;

use crate::fields::Fields;
use crate::file_name::encoded;
use crate::reply::Reply;

/// The script appended to pages, with a gap for the server's path prefix as the client sees it.
#[derive(Clone, Debug)]
pub struct LiveReload {
    /// Text before the prefix.
    pub before: String,
    /// Text after the prefix.
    pub behind: String,
}

/// Values of `Sec-Fetch-Dest` with which browsers request a page.
pub(crate) const PAGES: [&[u8]; 5] = [b"document", b"iframe", b"frame", b"embed", b"object"];

impl LiveReload {
    /// The reply with the script appended.
    pub(crate) fn added_to(&self, reply: Reply, root: &[u8]) -> Reply {
        let script = [&self.before, &*encoded(root, b"/"), &self.behind].concat();
        reply.followed_by(script.into_bytes())
    }
}

/// Whether the response will be shown as a page. Older browsers do not send `Sec-Fetch-Dest`, and none does to another machine
/// without TLS.
pub(crate) fn is_for_page(method: &[u8], head: &Head, bytes: &[u8]) -> bool {
    let value = |name: &str| {
        let named = |span: &[u8]| span.eq_ignore_ascii_case(name.as_bytes());
        head.fields.iter().find(|field| named(field.name.of(bytes))).map(|field| field.value.of(bytes))
    };
    method == b"GET"
        && match value("Sec-Fetch-Dest") {
            Some(destination) => {
                let is_early = || value("Sec-Purpose").is_some_and(|purpose| purpose.starts_with(b"prefetch"));
                PAGES.contains(&destination) || is_early()
            }
            None => value("X-Requested-With").or_else(|| value("HX-Request")).is_none(),
        }
}

/// The fields of a page with the script: without validators, as those are of the file alone. `None`: not a page, or in a
/// charset that the script is not written in.
pub(crate) fn fields_of_page(fields: &Fields, charset: &str) -> Option<Fields> {
    let line = fields.media_type().to_ascii_lowercase();
    let media_type = line.strip_prefix(b"content-type: text/html")?;
    let in_ascii = !charset.to_ascii_lowercase().starts_with("utf-16");
    let is_whole = !media_type.first().is_some_and(|next| !matches!(next, b';' | b' ' | b'\r'));
    (in_ascii && is_whole).then(|| fields.without(&["ETag", "Last-Modified", "Accept-Ranges"]))
}
