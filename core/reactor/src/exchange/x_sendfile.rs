//! Files that an application names instead of sending them: `X-Sendfile` and `X-Accel-Redirect`.

use poorhttp_files::{FileRequest, Reply, SendfileTarget};
use poorhttp_http::Head;

use crate::exchange::reply::text_reply;
use crate::exchange::{Exchange, SendError};
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

    fn has(&self, name: &str) -> bool {
        self.fields().any(|line| is_field(line, name.as_bytes()))
    }

    /// Adds these fields to the response with the file; fields about the content are the file's.
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
            let of_the_file = lines(&reply.fields).any(|other| is_field(other, name));
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

/// Sends the named file with the application's fields. The request is over.
#[cold]
pub(crate) fn send(exchange: &mut Exchange) -> Result<(), SendError> {
    let Some(named) = exchange.named.take() else { return exchange.end() };
    exchange.reactor.advance_poll_number();
    let stream = exchange.stream.as_mut().ok_or(SendError::Over)?;
    let app_head = ApplicationHead(exchange.response.take_back(stream.output()));
    let reply = match find_file(exchange, &named, &app_head) {
        Some(reply) if !reply.status.starts_with("404") => app_head.around(reply),
        _ => {
            let (header, path) = match &named {
                SendfileTarget::File(path) => ("X-Sendfile", path),
                SendfileTarget::Location(path) => ("X-Accel-Redirect", path),
            };
            let message = format!("{header} names {path:?}, which is not a file that may be sent");
            exchange.log_message(Level::Error, &message);
            text_reply("404 Not Found", "404 Not Found", "")
        }
    };
    let brings = |name: &[u8]| lines(&reply.fields).any(|line| is_field(line, name));
    exchange.response.brings(brings(b"Date"), brings(b"Server"), brings(b"X-Request-ID"));
    exchange.reply(reply)
}

fn find_file(exchange: &Exchange, named: &SendfileTarget, app_head: &ApplicationHead) -> Option<Reply> {
    let (head, bytes) = exchange.head()?;
    let (root, path, prefix) = exchange.reactor.options.sendfile_roots.find(named)?;
    let method = head.method.of(bytes);
    // Only 200 may become 304 or 206.
    let nothing = Head::default();
    let head = if app_head.status().starts_with("200") { head } else { &nothing };
    let (now, poll) = (clock::unix_time(), exchange.reactor.poll_number());
    let script = exchange.request()?.script();
    let method = get_or_head(method);
    let request = FileRequest { head, bytes, method, script: &script, path: &path, prefix, now, poll, may_wait: true };
    Some(root.send_named(&request, &|name| app_head.has(name)))
}
