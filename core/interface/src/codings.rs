//! Interface of encoders of content codings (gzip, Brotli, zstd), which another extension module implements.

use std::ffi::c_void;

use poorhttp_http::ContentCoding;

use crate::table::Header;

/// Bytes of output that are made room for at once.
const ROOM: usize = 16 << 10;

/// What follows a piece of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// More input: the coding may hold bytes back.
    Nothing,
    /// The client can decode all that was given until now.
    Sync,
    /// The end of the content.
    Finish,
}

/// What is known of a body before it is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// All of it, so many bytes.
    Whole(usize),
    /// It comes in pieces.
    Stream,
    /// It comes in small pieces, and stays open for long: little memory is worth more than small pieces.
    Events,
}

/// An encoder could not be made, or has failed: there is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// What an encoder has done in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes of input that it has taken.
    pub taken: usize,
    /// Bytes of output that it has made.
    pub made: usize,
    /// Nothing is left to be done for this piece.
    pub is_done: bool,
}

/// A content coding as a stream: bytes in, coded bytes out.
pub trait Encoder: Send {
    /// Prepares it for another body. Fails for a coding that cannot be reset.
    fn reset(&mut self, body: Body) -> Result<(), Failed>;

    /// Codes a part of `input` into `room`. Until it is done, it is called again with the rest of the input.
    fn step(&mut self, input: &[u8], then: Flush, room: &mut [u8]) -> Result<Step, Failed>;

    /// Codes a piece of the body, and appends what is ready to `out`.
    fn encode(&mut self, mut input: &[u8], then: Flush, out: &mut Vec<u8>) -> Result<(), Failed> {
        loop {
            let start = out.len();
            out.resize(start + ROOM, 0);
            let step = self.step(input, then, &mut out[start..]);
            out.truncate(start + step.map_or(0, |step| step.made.min(ROOM)));
            let step = step?;
            input = input.get(step.taken..).ok_or(Failed)?;
            if step.is_done {
                return Ok(());
            }
        }
    }
}

crate::debug_by_name!(Encoder);

/// Makes encoders.
pub trait Encoders: Send + Sync {
    /// An encoder for a coding at a level of its own scale.
    fn encoder(&self, coding: ContentCoding, level: i32, body: Body) -> Result<Box<dyn Encoder>, Failed>;
}

crate::debug_by_name!(Encoders);

/// Name of the capsule that holds a [`CodingsTable`].
pub const CODINGS: &std::ffi::CStr = c"poorhttp.codings.1";

/// [`Encoders`] as C functions. An encoder is a pointer that [`CodingsTable::new`] has returned.
///
/// A body is a kind, of [`body_number`], and the bytes of a whole one.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CodingsTable {
    /// To be compared with that of the reader.
    pub header: Header,
    /// Makes an encoder for the coding of this place in [`ContentCoding::ALL`]; null: it has failed.
    pub new: unsafe extern "C" fn(coding: usize, level: i32, body: u32, length: usize) -> *mut c_void,
    /// Frees it.
    pub drop: unsafe extern "C" fn(encoder: *mut c_void),
    /// [`Encoder::reset`]; whether it has succeeded.
    pub reset: unsafe extern "C" fn(encoder: *mut c_void, body: u32, length: usize) -> bool,
    /// [`Encoder::step`], with the number of [`flush_number`]; whether it has succeeded.
    pub step: unsafe extern "C" fn(
        encoder: *mut c_void,
        input: *const u8,
        length: usize,
        then: u32,
        room: *mut u8,
        size: usize,
        step: *mut RawStep,
    ) -> bool,
}

/// [`Step`], as it is returned from a C function.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RawStep {
    /// See there.
    pub taken: usize,
    /// See there.
    pub made: usize,
    /// See there.
    pub is_done: bool,
}

/// The number of a kind of body, and its length.
pub fn body_number(body: Body) -> (u32, usize) {
    match body {
        Body::Whole(length) => (0, length),
        Body::Stream => (1, 0),
        Body::Events => (2, 0),
    }
}

/// The body of such a number. An unknown one is a stream.
pub fn body_of(number: u32, length: usize) -> Body {
    match number {
        0 => Body::Whole(length),
        2 => Body::Events,
        _ => Body::Stream,
    }
}

/// The number of what follows a piece.
pub fn flush_number(then: Flush) -> u32 {
    match then {
        Flush::Nothing => 0,
        Flush::Sync => 1,
        Flush::Finish => 2,
    }
}

/// What such a number means. An unknown one is the end.
pub fn flush_of(number: u32) -> Flush {
    match number {
        0 => Flush::Nothing,
        1 => Flush::Sync,
        _ => Flush::Finish,
    }
}
