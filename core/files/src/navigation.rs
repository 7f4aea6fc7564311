//! Tells whether a request without a file is for a page, so that a single-page application's file answers it.

use std::sync::Arc;

use poorhttp_http::Head;

use crate::live_reload::PAGES;
use crate::media_types;
use crate::reply::Reply;

/// What the choice of the fallback file depends on, for caches.
const VARY: &[u8] = b"Vary: Accept, Sec-Fetch-Dest\r\n";

/// Whether a request for a missing file may be for a page: a script, an image or data would be misunderstood if it were HTML.
pub(crate) fn is_possible(path: &[u8], head: &Head, bytes: &[u8]) -> bool {
    if media_types::names_other_than_page(path) {
        return false;
    }
    let values = |name: &'static [u8]| {
        let fields = head.fields.iter().filter(move |field| field.name.of(bytes).eq_ignore_ascii_case(name));
        fields.map(|field| field.value.of(bytes))
    };
    if let Some(destination) = values(b"Sec-Fetch-Dest").next() {
        // Empty: `fetch()`, for which HTML would hide that there is nothing; or a page that is fetched early.
        let is_early = || values(b"Sec-Purpose").any(|purpose| purpose.starts_with(b"prefetch"));
        return PAGES.contains(&destination) || is_early();
    }
    let mut accepted = values(b"Accept").flat_map(|value| value.split(|&byte| byte == b',')).peekable();
    accepted.peek().is_none() || accepted.any(accepts_page)
}

/// Whether a member of Accept (RFC 9110 section 12.5.1) is for HTML, and its weight is not 0.
fn accepts_page(member: &[u8]) -> bool {
    let Ok(member) = std::str::from_utf8(member) else { return false };
    let mut parts = member.split(';').map(str::trim);
    let range = parts.next().unwrap_or_default().to_ascii_lowercase();
    let is_refused = parts.any(|parameter| {
        let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="));
        weight.is_some_and(|weight| weight.parse() == Ok(0.0))
    });
    matches!(&*range, "text/html" | "text/*" | "*/*") && !is_refused
}

/// The reply with Vary.
pub(crate) fn varying(reply: Reply) -> Reply {
    Reply { fields: Arc::from([&*reply.fields, VARY].concat()), ..reply }
}
