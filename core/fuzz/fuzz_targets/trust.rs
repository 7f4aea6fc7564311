//! `poorhttp_fuzz::trust` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| poorhttp_fuzz::trust(octets));
