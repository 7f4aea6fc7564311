"""`poorhttp.dev.discovery`, which is `poorhttp.plugins.discovery`."""

from poorhttp.plugins.aliases.former_names import add

add(__name__, "poorhttp.plugins.discovery")
