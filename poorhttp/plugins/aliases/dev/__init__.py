"""`poorhttp.dev`, the old path of targets in files that `poorhttp init` has written."""
