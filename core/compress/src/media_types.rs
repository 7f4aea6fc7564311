//! Media types that are compressed.

use poorhttp_http::trim;

/// A list of media types: `text/html`, `text/*` for all of a type, `+json` for all with this suffix (RFC 6839), `*` for any.
#[derive(Clone, Debug, Default)]
pub struct MediaTypes(Vec<String>);

impl MediaTypes {
    /// The list of these patterns.
    pub fn new(patterns: impl IntoIterator<Item = String>) -> Self {
        MediaTypes(patterns.into_iter().map(|pattern| pattern.to_ascii_lowercase()).collect())
    }

    /// Whether the value of a Content-Type is one of them.
    pub(crate) fn contains(&self, value: &[u8]) -> bool {
        let essence = essence(value);
        self.0.iter().any(|pattern| match pattern.as_bytes() {
            b"*" => !essence.is_empty(),
            [start @ .., b'*'] => essence.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)),
            suffix @ [b'+', ..] => {
                essence.len() > suffix.len() && essence[essence.len() - suffix.len()..].eq_ignore_ascii_case(suffix)
            }
            whole => essence.eq_ignore_ascii_case(whole),
        })
    }
}

/// Whether the value of a Content-Type is that of server-sent events.
pub(crate) fn is_event_stream(value: &[u8]) -> bool {
    essence(value).eq_ignore_ascii_case(b"text/event-stream")
}

/// Type and subtype, without parameters.
fn essence(value: &[u8]) -> &[u8] {
    trim(value.split(|&byte| byte == b';').next().unwrap_or_default())
}
