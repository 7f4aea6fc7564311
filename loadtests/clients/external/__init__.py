"""Load generators of others: `wrk` (with `wrk.lua`), `ab`, `httperf` and `h2load`."""
