"""Modules of `poorhttp.logs` under their former names, which files for `log_config` have."""
