"""Settings: read from the command line, the environment and an ini file, each option declared once.

command_line.py   understands the words of the command line
loader.py         puts the settings together from all sources
ini.py            reads an ini file, with line numbers
read_file.py      reads configuration files without waiting for a pipe
host_names.py     names in `[host:NAME]`
settings.py       the class `Settings`, with the value of each option
options/          declarations of the options
parsers.py        turn the text of an option into its value
address.py        addresses to listen on
suggestions.py    the nearest right spelling of a wrong word
help.py           the text of `--help` and docs/options.md
version.py        the version of the server
"""
