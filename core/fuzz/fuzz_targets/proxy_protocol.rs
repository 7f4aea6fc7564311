//! `poorhttp_fuzz::proxy_protocol` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| poorhttp_fuzz::proxy_protocol(bytes));
