#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ptc_mcp::fuzzing::config(bytes));
