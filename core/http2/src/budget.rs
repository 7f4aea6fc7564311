//! Budget of what costs a server more than its client: streams that end early, and frames that bring nothing.
//!
//! Nothing here reads a clock. What a client has used up comes back with each request that is answered, and with the seconds that
//! the embedding reports.

use crate::error::ConnectionError;
use crate::options::Options;

/// What is left of the two allowances.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    resets: u32,
    frames: u32,
    /// Malformed requests that are answered before they are only reset.
    answers: u32,
    most_resets: u32,
    most_frames: u32,
    /// Bytes of content sent that have not allowed a frame yet.
    sent: usize,
}

/// Malformed requests that are answered at once; each other response and each second allow another one.
const ANSWERS: u32 = 50;
/// A request allows so many frames: some clients change windows and priorities around each.
const FRAMES_PER_REQUEST: u32 = 20;
/// So many bytes of sent content allow a frame: Go updates two windows for every 4 KiB that it reads, small devices for some hundred.
const BYTES_PER_FRAME: usize = 128;
/// So many frames follow a piece of content: many clients update the windows of the stream and of the connection after each.
const UPDATES_PER_PIECE: u32 = 2;

impl Budget {
    pub(crate) fn new(options: &Options) -> Self {
        let (resets, frames) = (options.resets, options.frames);
        Budget { resets, frames, answers: ANSWERS, most_resets: resets, most_frames: frames, sent: 0 }
    }

    /// A stream ends early; `reason` says how, for the log.
    pub(crate) fn reset(&mut self, reason: &'static str) -> Result<(), ConnectionError> {
        self.resets = self.resets.checked_sub(1).ok_or(ConnectionError::calm(reason, self.most_resets as usize))?;
        Ok(())
    }

    /// A request is refused, with 400 if it `is_malformed`. `false`: it gets no answer, which costs as much as that to a good request.
    pub(crate) fn refuse(&mut self, is_malformed: bool) -> Result<bool, ConnectionError> {
        self.reset("too many malformed requests")?;
        let left = self.answers.checked_sub(is_malformed.into());
        self.answers = left.unwrap_or(0);
        Ok(left.is_some())
    }

    /// Frames arrive that bring nothing; `reason` says which, for the log.
    pub(crate) fn frames(&mut self, count: u32, reason: &'static str) -> Result<(), ConnectionError> {
        self.frames = self.frames.checked_sub(count).ok_or(ConnectionError::calm(reason, self.most_frames as usize))?;
        Ok(())
    }

    /// A request has come.
    pub(crate) fn request(&mut self) {
        self.add_frames(FRAMES_PER_REQUEST);
    }

    /// A response is complete.
    pub(crate) fn response(&mut self) {
        self.resets = self.resets.saturating_add(1).min(self.most_resets);
        self.add_answers(1);
    }

    /// Content is sent: the client has to update its windows. `is_whole`: all that there was, so even a short one may be followed by
    /// two updates. A window that cut it allows nothing by itself, or a client could open windows byte by byte forever.
    pub(crate) fn sent(&mut self, bytes: usize, is_whole: bool) {
        self.sent += bytes;
        let updates = if is_whole { UPDATES_PER_PIECE } else { 0 };
        self.add_frames(updates + (self.sent / BYTES_PER_FRAME) as u32);
        self.sent %= BYTES_PER_FRAME;
    }

    /// Seconds pass.
    pub(crate) fn pass(&mut self, seconds: u32) {
        self.resets =
            self.resets.saturating_add(seconds.saturating_mul(Options::RESETS_PER_SECOND)).min(self.most_resets);
        self.add_frames(seconds.saturating_mul(Options::FRAMES_PER_SECOND));
        self.add_answers(seconds);
    }

    fn add_answers(&mut self, count: u32) {
        self.answers = self.answers.saturating_add(count).min(ANSWERS);
    }

    fn add_frames(&mut self, count: u32) {
        self.frames = self.frames.saturating_add(count).min(self.most_frames);
    }
}
