//! `poorhttp_fuzz::streamed` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| poorhttp_fuzz::streamed(bytes));
