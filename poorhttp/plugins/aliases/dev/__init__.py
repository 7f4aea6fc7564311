"""`poorhttp.dev`: the old name of a module that files of earlier `poorhttp init` import."""
