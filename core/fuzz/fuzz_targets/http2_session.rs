//! Program of libFuzzer that calls the fuzz target `http2_session` with arbitrary bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| poorhttp_fuzz::http2_session(bytes));
