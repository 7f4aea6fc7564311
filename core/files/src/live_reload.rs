//! Pages that reload themselves when something has changed: a script is put behind them. For development.

use poorhttp_http::Head;

use crate::fields::Fields;
use crate::file_name::encoded;
use crate::reply::Reply;

/// What is put behind pages: what stands before and behind the path below which the client knows us.
#[derive(Clone, Debug)]
pub struct LiveReload {
    /// Before it.
    pub before: String,
    /// Behind it.
    pub behind: String,
}

/// What browsers want to show with what they ask for (`Sec-Fetch-Dest`), if it is a page.
const PAGES: [&[u8]; 5] = [b"document", b"iframe", b"frame", b"embed", b"object"];

impl LiveReload {
    /// The reply with what makes it live behind it.
    pub(crate) fn added_to(&self, reply: Reply, root: &[u8]) -> Reply {
        let script = [&self.before, &*encoded(root, b"/"), &self.behind].concat();
        reply.followed_by(script.into_bytes())
    }
}

/// Whether a request is for something that will be shown as a page. Older browsers do not say that, and none does where it cannot
/// trust the way: without TLS, from another machine.
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

/// The fields of a page to which something is added: no cache may keep it, because of what is added, and it is not the file that
/// validators tell of. `None`: it is no page, or nothing can be added to it.
pub(crate) fn fields_of_page(fields: &Fields, charset: &str) -> Option<Fields> {
    let line = fields.media_type().to_ascii_lowercase();
    let media_type = line.strip_prefix(b"content-type: text/html")?;
    let in_ascii = !charset.to_ascii_lowercase().starts_with("utf-16");
    let is_whole = !media_type.first().is_some_and(|next| !matches!(next, b';' | b' ' | b'\r'));
    (in_ascii && is_whole).then(|| fields.without(&["ETag", "Last-Modified", "Accept-Ranges"]))
}
