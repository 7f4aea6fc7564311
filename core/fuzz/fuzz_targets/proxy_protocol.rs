//! `poorhttp_fuzz::proxy_protocol` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| poorhttp_fuzz::proxy_protocol(octets));
