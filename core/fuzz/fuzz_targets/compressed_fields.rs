//! `poorhttp_fuzz::compressed_fields` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| poorhttp_fuzz::compressed_fields(bytes));
