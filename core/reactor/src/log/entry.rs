//! Access-log entries of answers: what was sent of them is known only when the kernel has taken their last byte.

use std::net::IpAddr;

use poorhttp_http::Head;

use crate::connection::Connection;
use crate::log::format::{Entry, State};
use crate::reactor::Reactor;

/// An answer that is complete or given up, perhaps not sent yet. Positions count the bytes of its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) client: Option<IpAddr>,
    /// Its request could not be understood, or it is a connection that was not read.
    pub(crate) has_no_head: bool,
    pub(crate) status: u16,
    /// Bytes of its content.
    pub(crate) size: u64,
    /// Where it begins.
    pub(crate) start: u64,
    /// Where its head ends.
    pub(crate) body: u64,
    /// Where it ends.
    pub(crate) end: u64,
    /// It has been made as a whole.
    pub(crate) is_whole: bool,
    pub(crate) persists: bool,
    /// When its request was there, of [`crate::log::access::AccessLog::start`].
    pub(crate) started: u64,
    pub(crate) number: u64,
    pub(crate) kept: u32,
}

/// The same, with the head of its request, which its connection does not have any more.
#[derive(Debug)]
pub(crate) struct Unsent {
    answer: Answer,
    head: Option<(Head, Vec<u8>)>,
}

impl Answer {
    /// Bytes of content and of all when the kernel has taken what stands before `position`. Of the framing of a body that
    /// was cut off, each byte of content has the same share.
    fn sent(&self, position: u64) -> (u64, u64) {
        let sent = position.min(self.end).saturating_sub(self.start);
        let head = self.body.saturating_sub(self.start);
        let framed = self.end.saturating_sub(self.start + head);
        let size = match sent.saturating_sub(head) {
            all if all == framed => self.size,
            part => (u128::from(self.size) * u128::from(part) / u128::from(framed)) as u64,
        };
        (size, sent)
    }

    /// Whether all of it stands before `position`.
    fn is_before(&self, position: u64) -> bool {
        position >= self.end
    }
}

impl Connection {
    /// Bytes that the kernel has taken so far.
    pub(crate) fn position(&self) -> u64 {
        let waiting = if self.has_outlet { self.link.outlet().as_ref().map_or(0, |outlet| outlet.sent()) } else { 0 };
        self.taken + waiting
    }

    /// Bytes that have been made so far, sent or not.
    #[inline]
    pub(crate) fn end_of_output(&self) -> u64 {
        let waiting = if self.has_outlet { self.link.outlet().as_ref().map_or(0, |outlet| outlet.queued()) } else { 0 };
        self.taken + self.dropped + waiting + self.work.as_ref().map_or(0, |work| work.out.len() as u64)
    }
}

impl Reactor {
    /// Notes what is to be logged of a refusal with so many bytes of content, which begins at `start`, when it has been sent.
    #[cold]
    pub(crate) fn note_refusal(&self, connection: &mut Connection, status: u16, size: u64, start: u64, number: u64) {
        let Some(log) = &self.options.access_log else { return };
        let end = connection.end_of_output();
        connection.work().answer = Some(Answer {
            client: connection.client().map(|(address, _)| address),
            has_no_head: true,
            status,
            size,
            start,
            body: end - size,
            end,
            is_whole: true,
            persists: false,
            started: log.start(),
            number,
            kept: connection.served,
        });
    }

    /// Logs what has been sent, and keeps what is needed to log the rest: the head of the last request will be gone.
    #[inline]
    pub(crate) fn log_sent(&self, connection: &mut Connection) {
        if self.options.access_log.is_none() {
            return;
        }
        if !connection.unsent.is_empty() {
            self.log_unsent(connection, false);
        }
        if connection.has_outlet {
            return self.log_later(connection);
        }
        let Some(work) = &mut connection.work else { return };
        if let Some(answer) = &work.answer {
            self.log_answer(answer, Some((&work.intake.head, work.intake.head_bytes())), connection.taken);
            work.answer = None;
        }
    }

    /// Keeps what is needed to log the answer that waits in the buffer.
    #[cold]
    pub(crate) fn log_later(&self, connection: &mut Connection) {
        if let Some(answer) = connection.work().answer.take() {
            keep(connection, answer);
        }
    }

    /// Logs the answers that have been sent as a whole; or all, because nothing more will be sent.
    #[cold]
    pub(crate) fn log_unsent(&self, connection: &mut Connection, all: bool) {
        let position = connection.position();
        let sent = connection.unsent.iter().take_while(|unsent| all || unsent.answer.is_before(position)).count();
        for unsent in connection.unsent.drain(..sent) {
            let head = unsent.head.as_ref().map(|(head, bytes)| (head, &bytes[..]));
            self.log_answer(&unsent.answer, head, position);
        }
    }

    /// Logs what is left, because the connection ends.
    #[inline]
    pub(crate) fn log_rest(&self, connection: &mut Connection) {
        if !connection.unsent.is_empty() {
            self.log_unsent(connection, true);
        }
        let position = connection.position();
        if let Some(work) = &mut connection.work
            && let Some(answer) = work.answer.take()
        {
            self.log_answer(&answer, Some((&work.intake.head, work.intake.head_bytes())), position);
        }
    }

    #[inline]
    fn log_answer(&self, answer: &Answer, head: Option<(&Head, &[u8])>, position: u64) {
        let Some(log) = &self.options.access_log else { return };
        let (size, sent) = answer.sent(position);
        let entry = Entry {
            client: answer.client,
            head: head.filter(|_| !answer.has_no_head),
            status: answer.status,
            size,
            sent,
            state: match answer.is_whole && answer.is_before(position) {
                false => State::Incomplete,
                true if answer.persists => State::Persists,
                true => State::Closed,
            },
            microseconds: log.start().saturating_sub(answer.started),
            number: answer.number,
            kept: answer.kept,
        };
        self.add_to_log(log, &entry);
    }
}

#[cold]
fn keep(connection: &mut Connection, answer: Answer) {
    let head = connection.work.as_ref().filter(|_| !answer.has_no_head);
    let head = head.map(|work| (work.intake.head.clone(), work.intake.head_bytes().to_vec()));
    connection.unsent.push(Unsent { answer, head });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_of_an_answer() {
        let answer = Answer {
            client: None,
            has_no_head: false,
            status: 200,
            size: 1_000,
            start: 500,
            body: 600,
            // A thousand chunks of one byte.
            end: 600 + 6_000,
            is_whole: true,
            persists: true,
            started: 0,
            number: 1,
            kept: 0,
        };
        for (position, size, sent) in
            [(400, 0, 0), (550, 0, 50), (600, 0, 100), (3_600, 500, 3_100), (9_999, 1_000, 6_100)]
        {
            assert_eq!(answer.sent(position), (size, sent), "{position}");
        }
        let head_only = Answer { end: 600, size: 0, ..answer };
        assert_eq!(head_only.sent(600), (0, 100));
    }
}
