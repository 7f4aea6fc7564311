//! From connections that are ready to requests: the top of the crate, which knows all other rooms.
//!
//! ```text
//! api.rs     what the embedding calls
//! next.rs    waits for the next request, and decides which thread polls
//! state.rs   state machine of a connection: receive, parse, dispatch
//! ```

pub(crate) mod api;
pub(crate) mod next;
pub(crate) mod state;
