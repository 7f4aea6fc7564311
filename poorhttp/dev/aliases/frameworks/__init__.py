"""`poorhttp.frameworks`, the name of `poorhttp.dev.discovery` before."""
