//! `poorhttp_fuzz::wishes` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| poorhttp_fuzz::wishes(octets));
