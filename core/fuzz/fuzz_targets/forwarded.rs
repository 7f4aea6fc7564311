//! `poorhttp_fuzz::forwarded` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| poorhttp_fuzz::forwarded(octets));
