"""Commands around the server: what a new deployment needs.

deployment/   `poorhttp init`: files for a deployment
migrate/      `poorhttp migrate`: reads configurations of other servers
shell/        completion for shells, man pages
"""
