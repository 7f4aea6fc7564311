//! An embedding of a connection without a socket: it answers each request with its content, for tests and the example.
//!
//! A request without content gets its head as text, one for the path `/N` N bytes.

// Each user has a part.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::collections::BTreeMap;
use std::sync::Arc;

use poorhttp_http2::{Connection, Event, Options, Request};

/// What is to be sent on a stream.
#[derive(Default)]
struct Answer {
    content: Vec<u8>,
    sent: usize,
    /// The request has come as a whole.
    is_complete: bool,
}

pub struct Echo {
    pub connection: Connection,
    answers: BTreeMap<u32, Answer>,
}

impl Echo {
    pub fn new(options: Options) -> Self {
        Echo { connection: Connection::new(Arc::new(options)), answers: BTreeMap::new() }
    }

    /// Receives bytes of the client and answers what they complete.
    pub fn receive(&mut self, mut bytes: &[u8]) {
        loop {
            match self.connection.receive(&mut bytes) {
                Event::NeedMore | Event::Failed(_) => break,
                Event::Request(request) => self.begin(*request),
                Event::Content { stream, bytes } => {
                    if let Some(answer) = self.answers.get_mut(&stream) {
                        answer.content.extend_from_slice(bytes);
                    }
                    self.connection.consumed(stream, bytes.len() as u32);
                }
                Event::Ended { stream } => {
                    if let Some(answer) = self.answers.get_mut(&stream) {
                        answer.is_complete = true;
                    }
                    self.send(stream);
                }
                Event::Refused { stream, reject, .. } => {
                    self.answers.remove(&stream);
                    // If the response has begun already, the stream is reset.
                    if self.connection.send_head(stream, reject.status, [], true).is_err() {
                        self.connection.close(stream);
                    }
                }
                Event::Reset { stream, .. } => {
                    self.answers.remove(&stream);
                    self.connection.close(stream);
                }
            }
        }
    }

    /// The bytes to send now. When they are sent there may be more.
    pub fn output(&mut self) -> Vec<u8> {
        while let Some(stream) = self.connection.next_writable() {
            self.send(stream);
        }
        self.connection.take_output()
    }

    fn begin(&mut self, request: Request) {
        let stream = request.stream;
        let path = request.head.path().of(&request.text);
        let number = path.strip_prefix(b"/").and_then(|path| std::str::from_utf8(path).ok()?.parse().ok());
        let content = match number {
            Some(length) => vec![b'a'; length],
            None if request.has_content => Vec::new(),
            None => request.text,
        };
        let is_complete = !request.has_content;
        self.answers.insert(stream, Answer { content, sent: 0, is_complete });
        // The stream cannot be gone: its request has just come.
        if request.head.expects_continue {
            let _ = self.connection.send_head(stream, 100, [], false);
        }
        let _ = self.connection.send_head(stream, 200, [(&b"Server"[..], &b"echo"[..])], false);
        self.send(stream);
    }

    /// Sends what it can of an answer.
    fn send(&mut self, stream: u32) {
        let Some(answer) = self.answers.get_mut(&stream) else { return };
        let rest = &answer.content[answer.sent..];
        if !answer.is_complete && rest.is_empty() {
            return;
        }
        let sent = self.connection.send_data(stream, rest, answer.is_complete);
        answer.sent += sent.unwrap_or(0);
        if sent.is_err() || answer.is_complete && answer.sent == answer.content.len() {
            self.answers.remove(&stream);
        }
    }
}
