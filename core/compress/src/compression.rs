//! Options of compression, the decision for a response, and the encoders that are kept for the next one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use poorhttp_http::{ConditionalFields, ContentCoding};
use poorhttp_interface::codings::{Body, Encoder, Encoders, Failed, Flush};

use crate::fields::{Found, rewritten, without_override};
use crate::media_types::MediaTypes;

/// Encoders that are kept for the next response: as many as there are often threads that compress at once.
const MOST_IDLE: usize = 4;
/// Bytes of memory that encoders may use at once; beyond, responses are sent as they are.
const MOST_MEMORY: usize = 64 << 20;

/// The level of each coding, on its own scale.
#[derive(Clone, Copy, Debug)]
pub struct Levels {
    /// 0 to 6: higher ones need 10 to 37 MB.
    pub brotli: i32,
    /// -7 to 9: higher ones need 40 to 80 MB.
    pub zstd: i32,
    /// 1 to 9
    pub gzip: i32,
}

impl Default for Levels {
    fn default() -> Self {
        Levels { brotli: 5, zstd: 3, gzip: 5 }
    }
}

impl Levels {
    /// Sets the level of a coding.
    pub fn set(&mut self, coding: ContentCoding, level: i32) {
        match coding {
            ContentCoding::Brotli => self.brotli = level,
            ContentCoding::Zstd => self.zstd = level,
            ContentCoding::Gzip => self.gzip = level,
        }
    }
}

/// The options of compression, and its encoders.
#[derive(Debug)]
pub struct Compression {
    codings: Vec<ContentCoding>,
    types: MediaTypes,
    min_size: u64,
    levels: Levels,
    encoders: Arc<dyn Encoders>,
    idle: Mutex<Vec<Idle>>,
    /// Bytes that encoders in use may need.
    memory: AtomicUsize,
}

/// An encoder that is kept for a body of this kind.
#[derive(Debug)]
struct Idle {
    coding: ContentCoding,
    body: Body,
    encoder: Box<dyn Encoder>,
}

/// A response that may be compressed for clients that accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The coding for this client; `None`: it gets the plain body.
    pub coding: Option<ContentCoding>,
    /// The body is a stream of events.
    pub is_event_stream: bool,
}

impl Compression {
    /// With `codings` in the order of preference. Bodies of less than `min_size` bytes are not compressed.
    pub fn new(
        codings: Vec<ContentCoding>,
        types: MediaTypes,
        min_size: u64,
        levels: Levels,
        encoders: Arc<dyn Encoders>,
    ) -> Self {
        let (idle, memory) = (Mutex::default(), AtomicUsize::new(0));
        Compression { codings, types, min_size, levels, encoders, idle, memory }
    }

    /// Decides from status and header fields whether the response may be compressed, and in which coding it is sent to this
    /// client. `length`: of its body, if it is known.
    pub fn choose(
        &self,
        status: u16,
        block: &[u8],
        length: Option<u64>,
        request: &ConditionalFields<'_>,
    ) -> Option<Choice> {
        if matches!(status, 204..=206 | 304) {
            return None;
        }
        let found = Found::of(block, &self.types);
        found
            .is_eligible(length, self.min_size)
            .then(|| Choice { coding: request.coding(&self.codings), is_event_stream: found.is_event_stream })
    }

    /// Whether a body of this length is compressed for clients that accept that.
    pub fn is_eligible(&self, block: &[u8], length: u64) -> bool {
        Found::of(block, &self.types).is_eligible(Some(length), self.min_size)
    }

    /// Rewrites the header fields of a response for the coding that [`Compression::choose`] has chosen; without a choice,
    /// removes the field by which the application overrides compression. `None`: the fields are unchanged.
    pub fn fields(&self, block: &[u8], choice: Option<Choice>) -> Option<Vec<u8>> {
        match choice {
            Some(choice) => Some(rewritten(block, choice.coding)),
            None => without_override(block),
        }
    }

    /// Lends an encoder. `None`: so many are in use that their memory is used up.
    pub fn encoder(self: &Arc<Self>, coding: ContentCoding, body: Body) -> Option<StreamEncoder> {
        let cost = cost(coding, self.level(coding), body);
        if self.memory.fetch_add(cost, Ordering::Relaxed) + cost > MOST_MEMORY {
            self.memory.fetch_sub(cost, Ordering::Relaxed);
            return None;
        }
        // From now on dropping it gives the memory back.
        let mut lent = StreamEncoder { encoder: None, coding, body, cost, compression: Arc::clone(self) };
        let is_same = |idle: &Idle| idle.coding == coding && shares_encoder(idle.body, body);
        let mut idle = self.idle();
        let found = idle.iter().rposition(is_same).map(|at| idle.swap_remove(at).encoder);
        drop(idle);
        lent.encoder = match found {
            Some(mut encoder) => encoder.reset(body).ok().map(|()| encoder),
            None => self.encoders.encoder(coding, self.level(coding), body).ok(),
        };
        lent.encoder.is_some().then_some(lent)
    }

    /// Codes a whole body. `None`: there is no memory for it.
    pub fn whole(self: &Arc<Self>, coding: ContentCoding, parts: &[&[u8]]) -> Option<Vec<u8>> {
        let length = parts.iter().map(|part| part.len()).sum();
        let mut encoder = self.encoder(coding, Body::Whole(length))?;
        let mut out = Vec::with_capacity(length / 4);
        let (last, others) = parts.split_last()?;
        for part in others {
            encoder.encode(part, Flush::Nothing, &mut out).ok()?;
        }
        encoder.encode(last, Flush::Finish, &mut out).ok()?;
        Some(out)
    }

    fn level(&self, coding: ContentCoding) -> i32 {
        match coding {
            ContentCoding::Brotli => self.levels.brotli,
            ContentCoding::Zstd => self.levels.zstd,
            ContentCoding::Gzip => self.levels.gzip,
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an encoder for one body can be used for another one.
fn shares_encoder(one: Body, other: Body) -> bool {
    (one == Body::Events) == (other == Body::Events)
}

/// Whether encoders of a coding can be reset.
fn is_reusable(coding: ContentCoding) -> bool {
    coding != ContentCoding::Brotli
}

/// Bytes that an encoder needs, as measured with these versions of the encoders.
fn cost(coding: ContentCoding, level: i32, body: Body) -> usize {
    let kib = match (coding, body, level) {
        (ContentCoding::Gzip, Body::Events, _) => 192,
        (ContentCoding::Gzip, ..) => 384,
        (ContentCoding::Brotli, Body::Events, _) => 384,
        (ContentCoding::Brotli, _, ..5) => 2_560,
        (ContentCoding::Brotli, ..) => 4_096,
        (ContentCoding::Zstd, Body::Events, _) => 128,
        (ContentCoding::Zstd, _, ..4) => 1_792,
        (ContentCoding::Zstd, _, 4..7) => 3_584,
        (ContentCoding::Zstd, ..) => 11_264,
    };
    kib << 10
}

/// An encoder on loan: it is kept for the next response when this is dropped.
#[derive(Debug)]
pub struct StreamEncoder {
    encoder: Option<Box<dyn Encoder>>,
    coding: ContentCoding,
    body: Body,
    cost: usize,
    compression: Arc<Compression>,
}

impl StreamEncoder {
    /// Codes a piece of the body, and appends what is ready to `out`.
    pub fn encode(&mut self, input: &[u8], then: Flush, out: &mut Vec<u8>) -> Result<(), Failed> {
        let encoder = self.encoder.as_mut().ok_or(Failed)?;
        let result = encoder.encode(input, then, out);
        if result.is_err() {
            self.encoder = None;
        }
        result
    }
}

impl Drop for StreamEncoder {
    fn drop(&mut self) {
        self.compression.memory.fetch_sub(self.cost, Ordering::Relaxed);
        let Some(encoder) = self.encoder.take().filter(|_| is_reusable(self.coding)) else { return };
        let mut idle = self.compression.idle();
        idle.push(Idle { coding: self.coding, body: self.body, encoder });
        let oldest = (idle.len() > MOST_IDLE).then(|| idle.remove(0));
        drop(idle);
        drop(oldest);
    }
}
