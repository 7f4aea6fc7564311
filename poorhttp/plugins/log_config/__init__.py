"""Both logs by Python's `logging`, as its configuration file `log_config` says.

options.py          the option
sink.py             what the server calls: configures `logging`, and makes a relay
configuration.py    applies the file, and keeps its handlers from the application
project_modules.py  has classes of the project found, before the application loads
checked.py          reads the file for `poorhttp check`, and opens nothing
worker_hooks.py     what `poorhttp check` calls
relay.py            forwards both logs to loggers
json_formatter.py   JSON lines from records, and the request of each record
"""
