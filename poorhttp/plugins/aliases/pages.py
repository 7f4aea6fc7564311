"""`poorhttp.pages`, which is `poorhttp.plugins.apps.pages`."""

from poorhttp.plugins.aliases.former_names import add

add(__name__, "poorhttp.plugins.apps.pages")
