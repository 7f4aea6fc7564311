//! Gathers the data of an access-log line (`log/entry.rs`) while a response is made.

use std::sync::Arc;

use crate::exchange::stream::Stream;
use crate::log::access::AccessLog;
use crate::log::entry::{Answer, Collected};

/// The part of an exchange that the access log asks for. Without an access log, nothing in it is used.
#[derive(Debug, Default)]
pub(crate) struct LogEntry {
    /// Of [`AccessLog::start`].
    started: u64,
    /// Positions in the output of the connection where the response begins, and where its content begins once the head is
    /// complete.
    start: u64,
    body: u64,
    /// What the access log needs of a request that is not like most.
    collected: Option<Box<Collected>>,
}

impl LogEntry {
    /// Of a response that begins now.
    #[inline(always)]
    pub(crate) fn begin(log: Option<&Arc<AccessLog>>, stream: &Stream) -> Self {
        let Some(log) = log else { return LogEntry::default() };
        let start = stream.end_of_output();
        LogEntry { started: log.start(), start, body: start, collected: log.wanted().map(|_| Box::default()) }
    }

    /// Where the response begins.
    #[inline]
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Whether the access log asks for something that is to be collected.
    #[inline]
    pub(crate) fn collects(&self) -> bool {
        self.collected.is_some()
    }

    /// The response begins at this position, behind an interim one.
    pub(crate) fn move_to(&mut self, start: u64) {
        (self.start, self.body) = (start, start);
    }

    /// The head is complete: its content begins at this position. `lines`: status line and fields.
    #[inline]
    pub(crate) fn end_head(&mut self, log: &AccessLog, body: u64, lines: &[u8]) {
        self.body = body;
        if let (Some(wanted), Some(collected)) = (log.wanted(), &mut self.collected) {
            collected.take_fields(&wanted.fields, lines);
        }
    }

    /// Notes the values of variables of the environ, as Latin-1.
    pub(crate) fn note_variables(&mut self, values: Vec<Vec<u8>>) {
        if let Some(collected) = &mut self.collected {
            collected.variables = values;
        }
    }

    /// Notes the length of the request's body.
    #[cold]
    pub(crate) fn note_body(&mut self, length: u64) {
        self.collected.get_or_insert_default().body = length;
    }

    /// Counts bytes of content that are compressed.
    pub(crate) fn note_uncoded(&mut self, bytes: u64) {
        self.collected.get_or_insert_default().uncoded += bytes;
    }

    /// The entry of a response that ends now on this stream, of which nothing is known yet but where it stands.
    // A copy of it for each step costs a request 1 % of its instructions.
    #[inline(always)]
    pub(crate) fn end(&mut self, log: &AccessLog, stream: &Stream, number: u64, status: u16) -> Answer {
        let request = stream.request();
        let mut asked = request.asked(number, self.started);
        let collected = self.collected.take().map(|mut collected| {
            asked.received += collected.body;
            if log.wanted().is_some() {
                collected.server = request.server(log);
            }
            collected
        });
        let (start, body, end) = (self.start, self.body, stream.end_of_output());
        Answer { start, body, end, collected, ..Answer::new(asked, status) }
    }

    /// The entry of a 504 that the thread of the timeout sends; where the response ends is added then.
    pub(crate) fn of_timeout(&self, log: &AccessLog, stream: &Stream, number: u64) -> Answer {
        let request = stream.request();
        let collected =
            log.wanted().map(|_| Box::new(Collected { server: request.server(log), ..Collected::default() }));
        Answer { is_whole: true, collected, ..Answer::new(request.asked(number, self.started), 504) }
    }
}
