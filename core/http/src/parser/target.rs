//! The request target (RFC 9112 section 3.2).

use std::borrow::Cow;

use crate::grammar::{hex, is_authority, percent_decoded, scan_target};
use crate::parser::types::{Span, Target};
use crate::reject::Reject;

/// Splits and checks a target. `at` is its position in the head.
pub(crate) fn parse(method: &[u8], target: &[u8], at: usize) -> Result<Target, Reject> {
    let Some(notable) = scan_target(target) else {
        return Err(Reject::bad("a character that a request target must not hold"));
    };
    match target {
        [b'/', ..] => split(target, at, Span::default(), notable),
        b"*" if method == b"OPTIONS" => Ok(Target { path: Span::new(at, 1), ..Target::default() }),
        _ => absolute(target, at, notable),
    }
}

fn absolute(target: &[u8], at: usize, notable: bool) -> Result<Target, Reject> {
    const FORM: Reject = Reject::bad("a request target that is neither a path nor an http URI");
    let scheme = memchr::memmem::find(target, b"://").ok_or(FORM)?;
    if !target[..scheme].eq_ignore_ascii_case(b"http") && !target[..scheme].eq_ignore_ascii_case(b"https") {
        return Err(FORM);
    }
    let start = scheme + 3;
    let length = memchr::memchr2(b'/', b'?', &target[start..]).unwrap_or(target.len() - start);
    let end = start + length;
    if !is_authority(&target[start..end]) {
        return Err(Reject::bad("a malformed authority in the request target"));
    }
    let parts = split(&target[end..], at + end, Span::new(at + start, length), notable)?;
    Ok(Target { is_https: scheme == b"https".len(), ..parts })
}

fn split(rest: &[u8], at: usize, authority: Span, notable: bool) -> Result<Target, Reject> {
    let length = memchr::memchr(b'?', rest).unwrap_or(rest.len());
    let path = &rest[..length];
    if notable {
        check_path(path)?;
    }
    let query = match length < rest.len() {
        true => Span::new(at + length + 1, rest.len() - length - 1),
        false => Span::default(),
    };
    Ok(Target { path: Span::new(at, length), query, authority, is_https: false })
}

/// Refuses a path that is valid in a target but that a proxy, a file system or another program may read in another way.
fn check_path(path: &[u8]) -> Result<(), Reject> {
    if memchr::memchr(b'\\', path).is_some() {
        return Err(Reject::bad("a backslash in the path"));
    }
    for at in memchr::memchr_iter(b'%', path) {
        match path[at + 1..] {
            [b'0', b'0', ..] => return Err(Reject::bad("a NUL in the path")),
            [b'0', b'a' | b'A' | b'd' | b'D', ..] => return Err(Reject::bad("a line end in the path")),
            [high, low, ..] if hex(high).is_some() && hex(low).is_some() => {}
            _ => return Err(Reject::bad("a percent sign without two hexadecimal digits in the path")),
        }
    }
    Ok(())
}

/// Decoded path, and query, of a path on this server given by a program; checked like a request target.
pub fn split_target(target: &[u8]) -> Result<(Cow<'_, [u8]>, &[u8]), Reject> {
    let parts = parse(b"GET", target, 0)?;
    Ok((percent_decoded(parts.path.of(target)), parts.query.of(target)))
}
