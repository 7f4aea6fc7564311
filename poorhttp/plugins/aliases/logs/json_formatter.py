"""`poorhttp.logs.json_formatter`, which is `poorhttp.plugins.log_config.json_formatter`."""

from poorhttp.plugins.aliases.former_names import add

add(__name__, "poorhttp.plugins.log_config.json_formatter")
