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
    most_resets: u32,
    most_frames: u32,
    /// Bytes of content sent that have not allowed a frame yet.
    sent: usize,
}

/// A request allows so many frames: some clients change windows and priorities around each.
const FRAMES_PER_REQUEST: u32 = 20;
/// So many bytes of sent content allow a frame: Go updates two windows for every 4 KiB that it reads.
const BYTES_PER_FRAME: usize = 1024;

impl Budget {
    pub(crate) fn new(options: &Options) -> Self {
        let (resets, frames) = (options.resets, options.frames);
        Budget { resets, frames, most_resets: resets, most_frames: frames, sent: 0 }
    }

    /// A stream ends early; `reason` says how, for the log.
    pub(crate) fn reset(&mut self, reason: &'static str) -> Result<(), ConnectionError> {
        self.resets = self.resets.checked_sub(1).ok_or(ConnectionError::calm(reason))?;
        Ok(())
    }

    /// Frames arrive that bring nothing; `reason` says which, for the log.
    pub(crate) fn frames(&mut self, count: u32, reason: &'static str) -> Result<(), ConnectionError> {
        self.frames = self.frames.checked_sub(count).ok_or(ConnectionError::calm(reason))?;
        Ok(())
    }

    /// A request has come.
    pub(crate) fn request(&mut self) {
        self.add_frames(FRAMES_PER_REQUEST);
    }

    /// A response is complete.
    pub(crate) fn response(&mut self) {
        self.resets = self.resets.saturating_add(1).min(self.most_resets);
    }

    /// Content is sent: the client has to update its windows.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        self.add_frames(2 + (self.sent / BYTES_PER_FRAME) as u32);
        self.sent %= BYTES_PER_FRAME;
    }

    /// Seconds pass.
    pub(crate) fn pass(&mut self, seconds: u32) {
        self.resets =
            self.resets.saturating_add(seconds.saturating_mul(Options::RESETS_PER_SECOND)).min(self.most_resets);
        self.add_frames(seconds.saturating_mul(Options::FRAMES_PER_SECOND));
    }

    fn add_frames(&mut self, count: u32) {
        self.frames = self.frames.saturating_add(count).min(self.most_frames);
    }
}
