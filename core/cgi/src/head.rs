//! The response header of a CGI program (RFC 3875 section 6).

/// A response header. The sender checks whether its fields are valid HTTP.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// Code and reason. `None`: a local redirect, whose only field is `Location` (RFC 3875 section 6.2.2).
    pub status: Option<String>,
    /// All fields but `Status`, decoded as Latin-1.
    pub fields: Vec<(String, String)>,
}

impl Head {
    /// Bytes of a head; Apache allows 8,190 for a line, lighttpd 64 KiB in all.
    pub const MOST: usize = 64 << 10;
    /// Fields of a head.
    const MOST_FIELDS: usize = 256;

    /// Parses the head at the beginning of `output`, whose lines end with LF or CRLF. Returns it and its length; `None`:
    /// incomplete. The error is worded for the author of the program.
    pub fn parse(output: &[u8]) -> Result<Option<(Head, usize)>, String> {
        if output.starts_with(b"HTTP/") {
            return Err("it begins with a status line; a CGI program writes Status: instead 200".into());
        }
        let mut lines = Vec::new();
        let mut start = 0;
        loop {
            let Some(length) = memchr::memchr(b'\n', &output[start..]) else {
                return match output.len() > Self::MOST {
                    true => Err(format!("its head is longer than {} bytes", Self::MOST)),
                    false => Ok(None),
                };
            };
            let line = &output[start..start + length];
            start += length + 1;
            if start > Self::MOST || lines.len() > Self::MOST_FIELDS {
                return Err("its head does not end".into());
            }
            match line.strip_suffix(b"\r").unwrap_or(line) {
                b"" => return Ok(Some((Self::of(&lines)?, start))),
                line => lines.push(line),
            }
        }
    }

    fn of(lines: &[&[u8]]) -> Result<Head, String> {
        let mut status = None;
        let mut fields = Vec::with_capacity(lines.len());
        for line in lines {
            let Some(colon) = memchr::memchr(b':', line) else {
                return Err(format!("a line of its head is not a header field: {}", excerpt(line)));
            };
            let (name, value) = (latin1(&line[..colon]), latin1(&line[colon + 1..]));
            let value = value.trim_matches([' ', '\t']).to_owned();
            let once = ["Status", "Location", "Content-Type"].iter().find(|once| name.eq_ignore_ascii_case(once));
            match once {
                Some(&"Status") if status.is_some() => return Err(twice("Status")),
                Some(&"Status") => status = Some(value),
                Some(once) if fields.iter().any(|(other, _): &(String, _)| other.eq_ignore_ascii_case(once)) => {
                    return Err(twice(once));
                }
                _ => fields.push((name, value)),
            }
        }
        let location = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("Location")).map(|(_, value)| value);
        let status = match (status, location) {
            (_, Some(path)) if path.is_empty() => return Err("its Location is empty".into()),
            (None, None) if fields.is_empty() => return Err("its head has no field".into()),
            (Some(status), _) => Some(status),
            (None, None) => Some("200 OK".to_owned()),
            // `//` begins a host name.
            (None, Some(path)) if path.starts_with('/') && !path.starts_with("//") && fields.len() == 1 => None,
            (None, Some(_)) => Some("302 Found".to_owned()),
        };
        Ok(Head { status, fields })
    }
}

fn twice(name: &str) -> String {
    format!("its head has two {name} fields")
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

fn excerpt(line: &[u8]) -> String {
    format!("\"{}\"", line[..line.len().min(80)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(output: &str) -> (Option<String>, Vec<(String, String)>, String) {
        let (head, length) = Head::parse(output.as_bytes()).unwrap().unwrap();
        (head.status, head.fields, output[length..].to_owned())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn documents_and_redirects() {
        let plain = pairs(&[("Content-Type", "text/plain")]);
        let status = |text: &str| Some(text.to_owned());
        assert_eq!(head("Content-Type: text/plain\n\nbody"), (status("200 OK"), plain.clone(), "body".into()));
        assert_eq!(head("Content-Type:text/plain \r\n\r\n\r\n"), (status("200 OK"), plain.clone(), "\r\n".into()));
        assert_eq!(
            head("status: 404 Gone\nContent-Type: text/plain\n\r\n"),
            (status("404 Gone"), plain, String::new())
        );
        assert_eq!(head("Location: /a?b\n\nx"), (None, pairs(&[("Location", "/a?b")]), "x".into()));
        assert_eq!(head("Status: 201\nLocation: /a\n\n"), (status("201"), pairs(&[("Location", "/a")]), String::new()));
        for location in ["http://else.where/", "//else.where/", "beside"] {
            assert_eq!(head(&format!("Location: {location}\n\n")).0, status("302 Found"));
        }
        assert_eq!(head("Location: /a\nSet-Cookie: b\n\n").0, status("302 Found"));
        assert_eq!(head("X: 1\nx: 2:3\n\n").1, pairs(&[("X", "1"), ("x", "2:3")]));
    }

    #[test]
    fn malformed_heads() {
        for output in
            ["\n", "\r\nbody", "Hello\n", "HTTP/1.1 200 OK\r\n", "Status: 200\nstatus: 200\n\n", "A: b\nno colon\n\n"]
        {
            let read = Head::parse(output.as_bytes());
            assert!(read.is_err() || output == "Hello\n" && read == Ok(None), "{output:?} {read:?}");
        }
        assert!(Head::parse(b"Location: /a\nLocation: /b\n\n").is_err());
        assert!(Head::parse(b"Location: \nStatus: 302 Found\n\n").is_err());
        assert!(Head::parse(&b"A: b\n".repeat(Head::MOST_FIELDS + 2)).is_err());
        assert!(Head::parse(&[b'a'; Head::MOST + 1]).is_err());
    }

    #[test]
    fn a_head_may_come_byte_by_byte() {
        let output = b"Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n";
        for length in 0..output.len() {
            assert_eq!(Head::parse(&output[..length]), Ok(None), "{length}");
        }
        assert!(Head::parse(output).unwrap().is_some());
    }
}
