"""Commands for a new deployment: `migrate`, `init`, `completion`, `man`, `plugins`.

commands.py     these commands
plugin_list.py  the list of plug-ins
deployment/     `poorhttp init`: files for a deployment
migrate/        `poorhttp migrate`: reads configurations of other servers
shell/          completion for shells, man pages
"""
