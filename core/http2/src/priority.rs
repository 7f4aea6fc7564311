//! Priorities of streams (RFC 9218).

/// The order in which a stream gets its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7.
    pub urgency: u8,
    /// Parts of the content are useful by themselves, so streams of this kind take turns.
    pub is_incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Priority { urgency: 3, is_incremental: false }
    }
}

impl Priority {
    /// The priority of a request that comes without one. Many such clients are intermediaries that send the requests of several
    /// people, and one large response must not hold up all others (RFC 9218 section 13.1).
    pub(crate) const UNKNOWN: Priority = Priority { urgency: 3, is_incremental: true };

    /// Takes what a field `Priority` says. It is a dictionary of structured fields (RFC 8941); what is not understood is ignored.
    pub fn update(&mut self, value: &[u8]) {
        for member in value.split(|&byte| byte == b',') {
            let member = member.split(|&byte| byte == b';').next().unwrap_or_default();
            match member.trim_ascii() {
                [b'u', b'=', urgency @ b'0'..=b'7'] => self.urgency = urgency - b'0',
                b"i" | b"i=?1" => self.is_incremental = true,
                b"i=?0" => self.is_incremental = false,
                _ => {}
            }
        }
    }

    /// The priority of a field `Priority`.
    pub fn of(value: &[u8]) -> Self {
        let mut priority = Priority::default();
        priority.update(value);
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        for (value, urgency, is_incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7, i", 7, true),
            ("i,u=5", 5, true),
            ("i=?0", 3, false),
            ("u=1;x=2 ,\t i=?1", 1, true),
            ("u=8, u=-1, u=a, u=, i=1, x", 3, false),
            ("u=2, u=9", 2, false),
            ("\u{fffd}=,;,", 3, false),
        ] {
            assert_eq!(Priority::of(value.as_bytes()), Priority { urgency, is_incremental }, "{value}");
        }
    }
}
