"""`poorhttp.frameworks`, the earlier name of `poorhttp.dev.discovery`."""
