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
/// So many bytes of sent content allow a frame: Go updates two windows for every 4 KiB that it reads, small devices for every KiB.
const BYTES_PER_FRAME: usize = 512;
/// Bytes of a head for each one of its header block that cost nothing: Huffman's code and the static table save so much.
const USUAL_GROWTH: usize = 4;
/// So many frames follow a piece of content: many clients update the windows of the stream and of the connection after each.
const UPDATES_PER_PIECE: u32 = 2;

impl Budget {
    pub(crate) fn new(options: &Options) -> Self {
        let (resets, frames) = (options.resets, options.frames);
        Budget { resets, frames, most_resets: resets, most_frames: frames, sent: 0 }
    }

    /// A stream ends early; `reason` says how, for the log.
    pub(crate) fn reset(&mut self, reason: &'static str) -> Result<(), ConnectionError> {
        self.resets = self.resets.checked_sub(1).ok_or(ConnectionError::calm(reason, self.most_resets as usize))?;
        Ok(())
    }

    /// Frames arrive that bring nothing; `reason` says which, for the log.
    pub(crate) fn frames(&mut self, count: u32, reason: &'static str) -> Result<(), ConnectionError> {
        self.frames = self.frames.checked_sub(count).ok_or(ConnectionError::calm(reason, self.most_frames as usize))?;
        Ok(())
    }

    /// A header block of `received` bytes has become a head of `size` bytes, which references to a large field of the table make
    /// large. It costs as many frames as its bytes would allow if they were sent. No honest head has more than one table of them.
    pub(crate) fn head(&mut self, size: usize, received: usize) -> Result<(), ConnectionError> {
        let grown = size.saturating_sub(USUAL_GROWTH * received);
        self.frames((grown / BYTES_PER_FRAME) as u32, "too much in short header blocks")
    }

    /// A request has come.
    pub(crate) fn request(&mut self) {
        self.add_frames(FRAMES_PER_REQUEST);
    }

    /// A response is complete.
    pub(crate) fn response(&mut self) {
        self.resets = self.resets.saturating_add(1).min(self.most_resets);
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
    }

    fn add_frames(&mut self, count: u32) {
        self.frames = self.frames.saturating_add(count).min(self.most_frames);
    }
}
