# Types of `poorhttp.logs.json_formatter`, the public name of a module of the plug-in `log_config`.
from poorhttp.plugins.log_config.json_formatter import *
