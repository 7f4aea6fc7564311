//! Files that an application names instead of sending them: `X-Sendfile` and `X-Accel-Redirect`.

use std::io;

use poorhttp_files::{FileRequest, GivenFields, Lookup, Reply, SendfileTarget};
use poorhttp_http::{ConditionalFields, Head};

use crate::exchange::reply::{self, text_reply};
use crate::exchange::send_error::SendError;
use crate::exchange::writer::ResponseWriter;
use crate::log::error::Level;
use crate::sys::clock;

/// The method for a file that is sent instead of a response: as to GET, whatever the method was.
pub(crate) fn get_or_head(method: &[u8]) -> &[u8] {
    if method == b"HEAD" { method } else { b"GET" }
}

/// Status line and fields of the application, as in the output.
struct ApplicationHead(Vec<u8>);

impl ApplicationHead {
    /// Status code and reason.
    fn status(&self) -> String {
        // After the version, or `Status:` in CGI.
        let mut words = lines(&self.0).next().unwrap_or_default().splitn(2, |&byte| byte == b' ').skip(1);
        String::from_utf8_lossy(words.next().unwrap_or_default()).trim_end().to_owned()
    }

    fn fields(&self) -> impl Iterator<Item = &[u8]> {
        lines(&self.0).skip(1)
    }

    /// The value of a field.
    fn value(&self, name: &str) -> Option<&str> {
        let line = self.fields().find(|line| is_field(line, name.as_bytes()))?;
        // One that is not UTF-8 is no validator that a client could have.
        Some(std::str::from_utf8(line.get(name.len() + 1..)?).unwrap_or_default().trim_ascii())
    }

    /// Whether the status says what has become of conditions or ranges of the request, which are the file's to decide: a
    /// response 206 with the whole file would damage what the client has.
    fn is_evaluated_anew(&self, head: &Head, bytes: &[u8]) -> bool {
        let conditional = ConditionalFields::of(head, bytes);
        let is_read = matches!(head.method.of(bytes), b"GET" | b"HEAD");
        match self.status().get(..3) {
            Some("206") => true,
            // Without a condition in the request, the file is the text of the refusal.
            Some("412") => is_read && !conditional.is_plain(),
            Some("416") => is_read && conditional.has_range(),
            _ => false,
        }
    }

    /// Adds these fields to the response with the file; fields about the content are the file's.
    fn around(&self, mut reply: Reply, is_evaluated_anew: bool) -> Reply {
        let is_whole = reply.status.starts_with("200");
        if !is_whole && !reply.status.starts_with("206") && !reply.status.starts_with("304") {
            return reply;
        }
        if is_whole && !is_evaluated_anew {
            reply.status = self.status().into();
        }
        let mut fields = reply.fields.to_vec();
        for line in self.fields() {
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            let of_the_file = lines(&reply.fields).any(|other| is_field(other, name));
            let is_of_its_body =
                [&b"Content-Length"[..], b"Content-Range"].iter().any(|of| name.eq_ignore_ascii_case(of));
            if !of_the_file && !is_of_its_body {
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

/// Sends the named file with the application's fields. The request is over.
#[cold]
pub(crate) fn send(writer: &mut ResponseWriter, named: &SendfileTarget) -> Result<(), SendError> {
    writer.state.advance_poll_number();
    let stream = writer.stream.as_mut().ok_or(SendError::Over)?;
    let app_head = ApplicationHead(writer.response.take_back(stream.output()));
    let (header, path) = match named {
        SendfileTarget::File(path) => ("X-Sendfile", path),
        SendfileTarget::Location(path) => ("X-Accel-Redirect", path),
    };
    let is_evaluated_anew = writer.head().is_some_and(|(head, bytes)| app_head.is_evaluated_anew(head, bytes));
    let reply = match find_file(writer, named, &app_head, is_evaluated_anew) {
        Some(Lookup::Reply(reply)) => app_head.around(reply, is_evaluated_anew),
        Some(Lookup::Failed(reply, error)) => {
            let message = format!("{header} names {path:?}, which cannot be read: {}", io::Error::from(error));
            writer.log_message(Level::Error, &message);
            reply
        }
        _ => {
            let message = format!("{header} names {path:?}, which is not a file that may be sent");
            writer.log_message(Level::Error, &message);
            text_reply("404 Not Found", "404 Not Found", "")
        }
    };
    let brings = |name: &[u8]| lines(&reply.fields).any(|line| is_field(line, name));
    writer.response.brings(brings(b"Date"), brings(b"Server"), brings(b"X-Request-ID"));
    reply::send(writer, reply)
}

/// The response with the first file that is there of those that may be meant.
fn find_file(
    writer: &ResponseWriter,
    named: &SendfileTarget,
    app_head: &ApplicationHead,
    is_evaluated_anew: bool,
) -> Option<Lookup> {
    let (head, bytes) = writer.head()?;
    let method = head.method.of(bytes);
    // Another status than 200 may not become 304 or 206.
    let nothing = Head::default();
    let head = if is_evaluated_anew || app_head.status().starts_with("200") { head } else { &nothing };
    let (now, poll) = (clock::unix_time(), writer.state.poll_number());
    let script = writer.request()?.script();
    let method = get_or_head(method);
    let given = GivenFields { value: &|name| app_head.value(name), is_evaluated_anew };
    let mut found = writer.state.responding.sendfile_roots.find(named).map(|(root, path, prefix)| {
        let path = &path;
        root.send_named(
            &FileRequest { head, bytes, method, script: &script, path, prefix, now, poll, may_wait: true },
            &given,
        )
    });
    found.find(|lookup| !matches!(lookup, Lookup::NotFound(_)))
}
