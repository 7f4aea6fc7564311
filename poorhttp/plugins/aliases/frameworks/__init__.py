"""`poorhttp.frameworks`, the earlier name of `poorhttp.plugins.discovery`."""
