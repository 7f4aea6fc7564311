//! Replays earlier findings and all protocol cases through the fuzz targets.

use std::panic::catch_unwind;

use poorhttp_fuzz::{TARGETS, corpus};

#[test]
fn properties_hold_for_the_corpus() {
    for (name, target) in TARGETS {
        let inputs: Vec<_> = corpus::found(name).into_iter().chain(corpus::cases(name)).collect();
        assert!(inputs.len() > 30, "{name}: only {} inputs", inputs.len());
        for input in inputs {
            assert!(catch_unwind(|| target(&input)).is_ok(), "{name} breaks a promise: {}", corpus::escape(&input));
        }
    }
}
