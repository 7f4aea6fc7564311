"""Commands for a new deployment: `migrate`, `init`, `completion`, `man`, `plugins`.

commands.py      these commands
plugin_list.py   the list of plug-ins
options_page.py  the page docs/reference/options.md; `options.md` is its beginning
deployment/      `poorhttp init`: files for a deployment
migrate/         `poorhttp migrate`: reads configurations of other servers
shell/           completion for shells, man pages
"""
