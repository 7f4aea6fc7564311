//! `poorhttp_fuzz::tls_session` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| poorhttp_fuzz::tls_session(bytes));
