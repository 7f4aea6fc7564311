//! `poorhttp_fuzz::response` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| poorhttp_fuzz::response(octets));
