"""The main process: workers, reloads, upgrades, signals, sockets, health and metrics."""
