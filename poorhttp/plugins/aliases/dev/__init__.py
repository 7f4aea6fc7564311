"""`poorhttp.dev`: targets in files that `poorhttp init` has written begin with it."""
