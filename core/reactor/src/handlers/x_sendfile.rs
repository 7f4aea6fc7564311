//! Files that an application names instead of sending them: `X-Sendfile` and `X-Accel-Redirect`.

use std::borrow::Cow;

use poorhttp_files::{Asked, Content, Reply, Site};
use poorhttp_http::{Head, decoded_path};

use crate::exchange::Exchange;
use crate::exchange::response::Unsent;
use crate::log::error::Level;
use crate::sys::clock;

/// From where files may be delivered.
#[derive(Debug, Default)]
pub struct Deliveries {
    /// Absolute paths of folders without a slash at their end, for `X-Sendfile`.
    folders: Vec<(String, Site)>,
    /// Prefixes without a slash at their end, for `X-Accel-Redirect`.
    locations: Vec<(String, Site)>,
}

/// What an application has named.
#[derive(Debug)]
pub(crate) enum Named {
    /// A path in the file system.
    File(String),
    /// A path of ours, as it would stand in a URL.
    Location(String),
}

impl Deliveries {
    /// Nothing is delivered.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.locations.is_empty()
    }

    /// Lets the files of a folder be named by their paths; `folder` is absolute.
    pub fn add_folder(&mut self, folder: &str, site: Site) {
        insert(&mut self.folders, folder.trim_end_matches('/'), site);
    }

    /// Lets the files of a folder be named below a prefix.
    pub fn add_location(&mut self, prefix: &str, site: Site) {
        insert(&mut self.locations, prefix.trim_end_matches('/'), site);
    }

    /// What a field of an answer names, if it is one of those that we understand.
    #[inline]
    pub(crate) fn understand(&self, name: &str, value: &str) -> Option<Named> {
        match name.len() {
            10 if name.eq_ignore_ascii_case("X-Sendfile") && !self.folders.is_empty() => {
                Some(Named::File(value.trim().into()))
            }
            16 if name.eq_ignore_ascii_case("X-Accel-Redirect") && !self.locations.is_empty() => {
                Some(Named::Location(value.trim().into()))
            }
            _ => None,
        }
    }

    /// The folder in which it is, its path, and where in it the name below the folder begins.
    fn find<'a>(&self, named: &'a Named) -> Option<(&Site, Cow<'a, [u8]>, usize)> {
        let (table, path) = match named {
            // A WSGI application writes octets as Latin-1.
            Named::File(path) => (&self.folders, latin1(path)),
            Named::Location(location) => {
                let path = location.split('?').next().unwrap_or_default();
                (&self.locations, decoded_path(&latin1(path)).into_owned().into())
            }
        };
        let (folder, site) = table
            .iter()
            .find(|(folder, _)| path.starts_with(folder.as_bytes()) && path.get(folder.len()) == Some(&b'/'))?;
        Some((site, path, folder.len()))
    }
}

/// The longest first.
fn insert(table: &mut Vec<(String, Site)>, name: &str, site: Site) {
    let at = table.partition_point(|(known, _)| known.len() > name.len());
    table.insert(at, (name.into(), site));
}

/// The octets that a native string of WSGI stands for; what is beyond them stays as it is.
fn latin1(text: &str) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text.as_bytes());
    }
    match text.chars().map(u8::try_from).collect() {
        Ok(octets) => Cow::Owned(octets),
        Err(_) => Cow::Borrowed(text.as_bytes()),
    }
}

impl Exchange {
    /// Whether a file is to be sent instead of what the application produces.
    #[inline]
    pub fn is_delivery(&self) -> bool {
        self.named.is_some()
    }

    /// Sends the file that the application has named, with the fields that it has given. The request is over.
    #[cold]
    pub(crate) fn deliver(&mut self) -> Result<(), Unsent> {
        let Some(named) = self.named.take() else { return self.end() };
        self.reactor.look_again();
        let connection = self.connection.as_mut().ok_or(Unsent::Over)?;
        let said = Said(self.response.take_back(&mut connection.work().out));
        let reply = match self.find_delivery(&named, &said) {
            Some(reply) if !reply.status.starts_with("404") => said.around(reply),
            _ => {
                let (header, path) = match &named {
                    Named::File(path) => ("X-Sendfile", path),
                    Named::Location(path) => ("X-Accel-Redirect", path),
                };
                let (number, line) = (self.number, self.request_line());
                let message =
                    format!("request {number} {line}: {header} names {path:?}, which is no file that may be sent");
                self.reactor.options.journal.write(Level::Error, &message);
                let text = b"404 Not Found\n";
                Reply {
                    status: "404 Not Found".into(),
                    fields: (*b"Content-Type: text/plain; charset=utf-8\r\n").into(),
                    length: text.len() as u64,
                    content: Content::Memory((*text).into()),
                }
            }
        };
        let brings = |name: &[u8]| lines(&reply.fields).any(|line| is_field(line, name));
        self.response.brings(brings(b"Date"), brings(b"Server"));
        self.reply(reply)
    }

    fn find_delivery(&self, named: &Named, said: &Said) -> Option<Reply> {
        let (head, bytes) = self.head()?;
        let (site, path, prefix) = self.reactor.options.deliveries.find(named)?;
        let method = head.method.of(bytes);
        // Only a plain success may become "not modified" or a part.
        let nothing = Head::default();
        let head = if said.status().starts_with("200") { head } else { &nothing };
        let (now, look) = (clock::today(), self.reactor.look());
        let script = self.connection.as_ref()?.script();
        let method = get_or_head(method);
        let asked = Asked { head, bytes, method, script: &script, path: &path, prefix, now, look, may_wait: true };
        Some(site.send_named(&asked, &|name| said.has(name)))
    }
}

/// To whatever method an application answers with a file, it is sent as to GET.
fn get_or_head(method: &[u8]) -> &[u8] {
    if method == b"HEAD" { method } else { b"GET" }
}

/// What the application has said: a status line and fields, as they stand in the buffer.
struct Said(Vec<u8>);

impl Said {
    /// Code and reason.
    fn status(&self) -> String {
        // Behind the version, or what CGI has in its place.
        let mut words = lines(&self.0).next().unwrap_or_default().splitn(2, |&byte| byte == b' ').skip(1);
        String::from_utf8_lossy(words.next().unwrap_or_default()).trim_end().to_owned()
    }

    fn fields(&self) -> impl Iterator<Item = &[u8]> {
        lines(&self.0).skip(1)
    }

    fn has(&self, name: &str) -> bool {
        self.fields().any(|line| is_field(line, name.as_bytes()))
    }

    /// The answer with these fields added: those about the content are the file's.
    fn around(&self, mut reply: Reply) -> Reply {
        let is_whole = reply.status.starts_with("200");
        if !is_whole && !reply.status.starts_with("206") && !reply.status.starts_with("304") {
            return reply;
        }
        if is_whole {
            reply.status = self.status().into();
        }
        let mut fields = reply.fields.to_vec();
        for line in self.fields() {
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            let is_said = |other: &[u8]| is_field(other, name);
            let of_the_file = lines(&reply.fields).any(is_said);
            if !of_the_file && !name.eq_ignore_ascii_case(b"Content-Length") {
                fields.extend_from_slice(line);
            }
        }
        reply.fields = fields.into();
        reply
    }
}

fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    block.split_inclusive(|&byte| byte == b'\n')
}

fn is_field(line: &[u8], name: &[u8]) -> bool {
    line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) && line.get(name.len()) == Some(&b':')
}
