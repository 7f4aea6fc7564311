//! `poorhttp_fuzz::forwarded` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| poorhttp_fuzz::forwarded(bytes));
