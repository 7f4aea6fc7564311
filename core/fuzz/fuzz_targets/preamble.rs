//! `poorhttp_fuzz::preamble` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| poorhttp_fuzz::preamble(octets));
