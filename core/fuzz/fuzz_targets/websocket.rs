//! Program of libFuzzer that calls the fuzz target `websocket` with arbitrary bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| poorhttp_fuzz::websocket(bytes));
