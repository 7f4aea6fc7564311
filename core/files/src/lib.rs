//! Static files: from a name in a request to what is sent. No sockets here, and no Python.
//!
//! A [`Site`] is a folder that is published. It is asked for an answer, and gives a [`Reply`]: status, fields, and octets in
//! memory or parts of open files, which somebody else sends. What is small, and was asked for before, is in a [`Cache`] that
//! all sites share.
//!
//! ```text
//! site.rs      what is asked, what is found: an answer in the order in which it is made
//! name.rs      what may be the name of a file at all
//! folder.rs    names into files, below the folder only; walk.rs the same without openat2
//! stamp.rs     what a file is told from its later self by
//! entry.rs     a file with all that is sent of it; siblings.rs its compressed copies
//! variant.rs   one of its forms, and the answer to conditions and ranges; multipart.rs several ranges
//! fields.rs    field lines; types.rs media types
//! cache.rs     entries that are kept
//! listing.rs   a folder as a page
//! live.rs      pages that reload themselves
//! refusal.rs   what is answered when there is no file to answer with
//! ```

#![forbid(unsafe_code)]

mod cache;
mod entry;
mod fields;
mod folder;
mod listing;
mod live;
mod multipart;
mod name;
mod refusal;
mod reply;
mod siblings;
mod site;
mod stamp;
mod types;
mod variant;
mod walk;

pub use cache::Cache;
pub use live::Live;
pub use reply::{Content, Part, Reply};
pub use site::{Asked, Found, Options, Site};

#[cfg(test)]
mod tests;
