"""`poorhttp dev`: reloads, discovery, error pages, terminal."""
