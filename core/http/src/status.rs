//! Reason phrases of final statuses (RFC 9110 section 15, and the registry of IANA).

/// The phrases, in the order of their codes.
pub const REASON_PHRASES: [(u16, &str); 57] = [
    (200, "OK"),
    (201, "Created"),
    (202, "Accepted"),
    (203, "Non-Authoritative Information"),
    (204, "No Content"),
    (205, "Reset Content"),
    (206, "Partial Content"),
    (207, "Multi-Status"),
    (208, "Already Reported"),
    (226, "IM Used"),
    (300, "Multiple Choices"),
    (301, "Moved Permanently"),
    (302, "Found"),
    (303, "See Other"),
    (304, "Not Modified"),
    (305, "Use Proxy"),
    (307, "Temporary Redirect"),
    (308, "Permanent Redirect"),
    (400, "Bad Request"),
    (401, "Unauthorized"),
    (402, "Payment Required"),
    (403, "Forbidden"),
    (404, "Not Found"),
    (405, "Method Not Allowed"),
    (406, "Not Acceptable"),
    (407, "Proxy Authentication Required"),
    (408, "Request Timeout"),
    (409, "Conflict"),
    (410, "Gone"),
    (411, "Length Required"),
    (412, "Precondition Failed"),
    (413, "Content Too Large"),
    (414, "URI Too Long"),
    (415, "Unsupported Media Type"),
    (416, "Range Not Satisfiable"),
    (417, "Expectation Failed"),
    (421, "Misdirected Request"),
    (422, "Unprocessable Content"),
    (423, "Locked"),
    (424, "Failed Dependency"),
    (425, "Too Early"),
    (426, "Upgrade Required"),
    (428, "Precondition Required"),
    (429, "Too Many Requests"),
    (431, "Request Header Fields Too Large"),
    (451, "Unavailable For Legal Reasons"),
    (500, "Internal Server Error"),
    (501, "Not Implemented"),
    (502, "Bad Gateway"),
    (503, "Service Unavailable"),
    (504, "Gateway Timeout"),
    (505, "HTTP Version Not Supported"),
    (506, "Variant Also Negotiates"),
    (507, "Insufficient Storage"),
    (508, "Loop Detected"),
    // RFC 2774, historic.
    (510, "Not Extended"),
    (511, "Network Authentication Required"),
];

/// The phrase of a code. `None`: it has none.
pub fn reason_phrase(code: u16) -> Option<&'static str> {
    let at = REASON_PHRASES.binary_search_by_key(&code, |(code, _)| *code).ok()?;
    REASON_PHRASES.get(at).map(|(_, phrase)| *phrase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_in_order() {
        assert!(REASON_PHRASES.is_sorted_by(|(one, _), (next, _)| one < next));
        assert_eq!(reason_phrase(404), Some("Not Found"));
        assert_eq!(reason_phrase(511), Some("Network Authentication Required"));
        assert_eq!(reason_phrase(299), None);
    }
}
