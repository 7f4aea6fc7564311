//! SCGI: a netstring of names and values, each followed by a NUL, then the body.

use memchr::memchr;

use crate::limits::Limits;
use crate::parser::gateway::packet::{MALFORMED, Packet, Variable};
use crate::reject::Reject;

/// Digits of [`Limits::MAX_HEAD`].
const MOST_DIGITS: usize = 7;

pub(super) fn find(bytes: &[u8], limits: &Limits) -> Result<Option<Packet>, Reject> {
    const FORM: Reject = Reject::bad("an SCGI request that does not begin with a length");
    let digits = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len());
    if matches!(bytes, [b'0', b'0'..=b'9', ..]) {
        return Err(FORM);
    }
    let length =
        bytes[..digits.min(MOST_DIGITS)].iter().fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    // More digits would only make it larger.
    if digits > MOST_DIGITS || length > limits.head {
        return Err(Reject::PACKET_TOO_LARGE);
    }
    match bytes.get(digits) {
        None => return Ok(None),
        Some(b':') if digits > 0 => {}
        Some(_) => return Err(FORM),
    }
    let variables = digits + 1..digits + 1 + length;
    let comma = variables.end;
    if comma + 1 > limits.head {
        return Err(Reject::PACKET_TOO_LARGE);
    }
    match bytes.get(comma) {
        None => return Ok(None),
        Some(b',') => {}
        Some(_) => return Err(Reject::bad("an SCGI request without a comma behind its variables")),
    }
    // The specification requires CONTENT_LENGTH first.
    if !bytes[variables.clone()].starts_with(b"CONTENT_LENGTH\0") {
        return Err(MALFORMED);
    }
    Ok(Some(Packet { variables, length: comma + 1 }))
}

pub(super) fn unpack(bytes: &[u8], at: usize) -> Option<Variable> {
    let until_nul = |at: usize| Some(at..at + memchr(0, bytes.get(at..)?)?);
    let name = until_nul(at)?;
    let value = until_nul(name.end + 1)?;
    let next = value.end + 1;
    Some((name, value, next))
}
