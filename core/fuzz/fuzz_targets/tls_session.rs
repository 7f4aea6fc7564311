//! Program of libFuzzer that calls the fuzz target `tls_session` with arbitrary bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| poorhttp_fuzz::tls_session(bytes));
