//! uwsgi: four bytes, then variables with 16-bit little-endian lengths before each name and value, then the body.

use crate::limits::Limits;
use crate::parser::gateway::packet::{Packet, Variable};
use crate::reject::Reject;

const HEADER: usize = 4;

pub(super) fn find(bytes: &[u8], limits: &Limits) -> Result<Option<Packet>, Reject> {
    match *bytes {
        // The first modifier is the kind of the packet: all others load code, reload, or talk to other services. The
        // second one selects an interpreter.
        [modifier, ..] if modifier != 0 => Err(Reject::bad("a uwsgi packet that is no request")),
        [_, low, high, modifier, ..] => {
            let length = HEADER + usize::from(u16::from_le_bytes([low, high]));
            if modifier != 0 {
                return Err(Reject::bad("a uwsgi packet for another interpreter"));
            }
            if length > limits.head {
                return Err(Reject::PACKET_TOO_LARGE);
            }
            Ok((bytes.len() >= length).then_some(Packet { variables: HEADER..length, length }))
        }
        _ => Ok(None),
    }
}

pub(super) fn unpack(bytes: &[u8], at: usize) -> Option<Variable> {
    let sized = |at: usize| {
        let length = bytes.get(at..at + 2)?;
        let start = at + 2;
        let end = start + usize::from(u16::from_le_bytes([length[0], length[1]]));
        (end <= bytes.len()).then_some(start..end)
    };
    let name = sized(at)?;
    let value = sized(name.end)?;
    let next = value.end;
    Some((name, value, next))
}
