//! The implementation of cryptography. Everything else names it by this module.

use std::sync::Arc;

pub(crate) use chosen::sign::any_supported_type;
pub(crate) use ring::{aead, digest, hmac, rand};
use rustls::crypto::{CryptoProvider, ring as chosen};

/// Algorithms of rustls: those that have no known weakness.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(chosen::default_provider())
}
