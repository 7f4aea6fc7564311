//! Access log, error log and slow log.
//!
//! ```text
//! request_id.rs  names and ids of requests
//! entry.rs       access-log data of a response, kept until its last byte is sent
//! format.rs      access log formats: reads format strings
//! line.rs        writes the line of a request
//! json.rs        writes JSON objects
//! selection.rs   requests that are left out of the access log
//! access.rs      access log: lines are collected and written in batches
//! writer.rs      thread that writes the access log to a file
//! slow.rs        requests slower than `slow_request`, with the phases of their time
//! error.rs       error log
//! sink.rs        file, pipe or syslog socket that a log is written to
//! ```

pub(crate) mod access;
pub(crate) mod entry;
pub(crate) mod error;
pub(crate) mod format;
mod json;
pub(crate) mod line;
pub(crate) mod request_id;
pub(crate) mod selection;
pub(crate) mod sink;
pub(crate) mod slow;
pub(crate) mod writer;
