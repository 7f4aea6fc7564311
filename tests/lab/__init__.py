"""The load lab, `loadtests/`."""
