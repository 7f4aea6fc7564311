//! What the reactor uses of TLS and of content codings, whose implementations are in extension modules of their own.
//!
//! A trait is what the reactor calls, and what the implementation has; both are Rust without `unsafe`. A table of C functions is
//! the same between two extension modules: one makes it of the implementation, the other makes the trait of it.
//!
//! ```text
//! tls.rs      sessions and certificates
//! kernel.rs   records that the kernel may make, and the keys for them
//! codings.rs  encoders of content codings
//! table.rs    what both tables have in common: bytes that are passed on, versions
//! ```

#![forbid(unsafe_code)]

/// `Debug` of a trait's objects by the name of the trait, so that the table of functions of each implementation does not hold the
/// derived `Debug` of all that it owns.
#[macro_export]
macro_rules! debug_by_name {
    ($name:ident) => {
        impl std::fmt::Debug for dyn $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

pub mod codings;
pub mod kernel;
pub mod table;
pub mod tls;
