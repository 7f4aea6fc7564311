"""`poorhttp.dispatch`, which is `poorhttp.plugins.apps.dispatch`."""

from poorhttp.plugins.aliases.former_names import add

add(__name__, "poorhttp.plugins.apps.dispatch")
