//! A packet of variables, and how a protocol unpacks one: shared by uwsgi, SCGI and FastCGI.

use std::ops::Range;

use crate::reject::Reject;

/// A complete packet of variables.
pub(crate) struct Packet {
    /// The position of the variables.
    pub(super) variables: Range<usize>,
    /// Length including framing.
    pub(super) length: usize,
}

/// One variable: its name, its value, and the position of the next one.
pub(super) type Variable = (Range<usize>, Range<usize>, usize);

/// Unpacks the variable at a position of a packet; `None`: it is malformed.
pub(super) type Unpack = fn(&[u8], usize) -> Option<Variable>;

pub(super) const MALFORMED: Reject = Reject::bad("a malformed packet of variables");
