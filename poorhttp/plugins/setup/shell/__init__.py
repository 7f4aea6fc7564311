"""Completion for shells, and man pages, made from the table of options.

command.py      the commands `poorhttp completion` and `poorhttp man`
vocabulary.py   all commands with their options, and the values that these take
bash.py         the completion for bash
zsh.py          the completion for zsh
fish.py         the completion for fish
man.py          the pages poorhttp(1) and poorhttp.ini(5)
"""
