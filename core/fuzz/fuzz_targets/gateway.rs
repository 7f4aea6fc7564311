//! `poorhttp_fuzz::gateway` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| poorhttp_fuzz::gateway(octets));
