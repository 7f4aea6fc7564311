"""Settings: read from the command line, the environment and an ini file, each option declared once.

registry.py       plug-ins: ours by a table, others by entry points
command.py        the class `Command`, a subcommand
command_line.py   parses the command line
loader.py         combines all sources into settings
ini.py            reads an ini file, with line numbers
host_names.py     checks the names in `[host:NAME]`
settings.py       the class `Settings`, with the value of each option
options/          declarations of the options
resources.py      CPUs and memory that this process may use: affinity, limits of cgroups
parsers.py        turn the text of an option into its value
address.py        addresses to listen on
other_servers/    values and advice for who knows other servers
suggestions.py    suggestions for misspelt words
help.py           the text of `--help`
version.py        the version of the server
"""
