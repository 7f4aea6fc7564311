"""Commands for a new deployment: `migrate`, `init`, `completion`, `man`.

commands.py   the commands `init`, `migrate`, `completion` and `man`
deployment/   `poorhttp init`: files for a deployment
migrate/      `poorhttp migrate`: reads configurations of other servers
shell/        completion for shells, man pages
"""
