//! Header field lines of static files.

use std::io;
use std::sync::Arc;

use poorhttp_http::is_token;

/// Fields that `static_header` must not set, as they depend on framing, on the connection, on one response or on the server.
const RESERVED: [&str; 12] = [
    "Connection",
    "Content-Length",
    "Content-Range",
    "Date",
    "Keep-Alive",
    "Proxy-Authenticate",
    "Proxy-Connection",
    "Server",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
];

/// Fields that describe content, and are left out of a 304 (RFC 9110 section 15.4.5).
const OF_CONTENT: [&str; 6] =
    ["Accept-Ranges", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Type", "Last-Modified"];

/// A field to add: path prefix, name and value.
pub(crate) type Addition = (String, String, String);

/// Whether a field name is in a list.
fn is_among(name: &str, names: &[&str]) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Checks that these fields can be added to a response.
pub(crate) fn check(additions: &[Addition]) -> io::Result<()> {
    for (_, name, value) in additions {
        let is_line = value.chars().all(|letter| letter == '\t' || !letter.is_control()) && value.is_ascii();
        if is_among(name, &RESERVED) || !is_token(name.as_bytes()) || !is_line {
            let reason = format!("{name}: {value}: a header that cannot be added to files");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
    }
    Ok(())
}

/// Whether a path begins with the whole segments of a prefix.
pub(crate) fn is_below(prefix: &str, path: &[u8]) -> bool {
    let rest = path.strip_prefix(prefix.trim_end_matches('/').as_bytes());
    rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
}

/// The additions for a path: for each name those with the longest prefix.
pub(crate) fn for_path<'a>(additions: &'a [Addition], path: &[u8]) -> Vec<(&'a str, &'a str)> {
    let applies = |(prefix, ..): &&Addition| is_below(prefix, path);
    let longest = |name: &str| {
        let of_name = additions.iter().filter(applies).filter(|(_, other, _)| other.eq_ignore_ascii_case(name));
        of_name.map(|(prefix, ..)| prefix.len()).max()
    };
    let chosen = additions.iter().filter(applies).filter(|(prefix, name, _)| Some(prefix.len()) == longest(name));
    chosen.map(|(_, name, value)| (name.as_str(), value.as_str())).collect()
}

/// The fields of responses with a file that are the same for all requests.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    /// For 200; Content-Type is first.
    pub(crate) whole: Arc<[u8]>,
    /// For 304.
    pub(crate) unchanged: Arc<[u8]>,
    /// Length of the Content-Type line in `whole`.
    type_end: usize,
}

impl Fields {
    /// Combines the server's fields and the additions, which replace those of the same name, except for Vary: it is a list.
    pub(crate) fn new(ours: &[(&str, &str)], additions: &[(&str, &str)]) -> Self {
        let is_added = |name: &str| additions.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let is_type = |(name, _): &&(&str, &str)| name.eq_ignore_ascii_case("Content-Type");
        let ours = ours.iter().filter(|(name, _)| *name == "Vary" || !is_added(name));
        let all: Vec<_> = ours.chain(additions).copied().collect();
        let mut whole: Vec<u8> = all.iter().find(is_type).map(line).unwrap_or_default();
        let type_end = whole.len();
        whole.extend(all.iter().filter(|field| !is_type(field)).flat_map(line));
        let unchanged: Vec<u8> = all.iter().filter(|(name, _)| !is_among(name, &OF_CONTENT)).flat_map(line).collect();
        Fields { whole: Arc::from(whole), unchanged: Arc::from(unchanged), type_end }
    }

    /// The fields without those of these names.
    pub(crate) fn without(&self, names: &[&str]) -> Fields {
        let given = |name: &str| is_among(name, names);
        Fields { whole: without(&self.whole, &given), unchanged: without(&self.unchanged, &given), ..*self }
    }

    /// The fields as `change` returns them, where it does; a 304 has no Content-Encoding.
    pub(crate) fn changed(&self, change: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Fields {
        let changed = |block: &Arc<[u8]>| change(block).map_or_else(|| Arc::clone(block), Arc::from);
        let unchanged = without(&changed(&self.unchanged), &|name| is_among(name, &OF_CONTENT));
        Fields { whole: changed(&self.whole), unchanged, ..*self }
    }

    /// The Content-Type line.
    pub(crate) fn media_type(&self) -> &[u8] {
        &self.whole[..self.type_end]
    }

    /// All lines but Content-Type.
    pub(crate) fn others(&self) -> &[u8] {
        &self.whole[self.type_end..]
    }

    /// Bytes in memory.
    pub(crate) fn weight(&self) -> usize {
        self.whole.len() + self.unchanged.len()
    }
}

fn line((name, value): &(&str, &str)) -> Vec<u8> {
    format!("{name}: {value}\r\n").into_bytes()
}

/// The lines of a block without those whose names are `given`.
pub(crate) fn without(block: &[u8], given: &dyn Fn(&str) -> bool) -> Arc<[u8]> {
    let is_given = |line: &&[u8]| {
        let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
        std::str::from_utf8(name).is_ok_and(given)
    };
    block.split_inclusive(|&byte| byte == b'\n').filter(|line| !is_given(line)).flatten().copied().collect()
}
