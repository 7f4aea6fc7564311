"""Fallback rules of `migrate`: aliases of our options, and advice of the command line."""

from __future__ import annotations

from poorhttp.config.other_servers.advice import advice
from poorhttp.config.other_servers.translations import translate
from poorhttp.config.settings import OPTIONS
from poorhttp.plugins.setup.migrate.equivalents.plan import Rule, Setting, explained


def rule_for(setting: Setting, otherwise: str, aliases: bool = True) -> Rule:
    """Return the rule for a name: an option that has it as an alias, or advice.

    Args:
        setting: the setting, under its name in the other server.
        otherwise: the explanation if the name is not known at all.
        aliases: whether it can be an alias; a file of uWSGI has placeholders of any name.
    """
    name = setting.name.replace("_", "-")
    for option in OPTIONS.values() if aliases else ():
        if name in option.aliases and isinstance(setting.value, (str, int, float)):
            return Rule(option=option.name, translate=lambda text: translate(name, text))
    if text := advice(name):
        return explained(f"{text[:1].upper()}{text[1:]}.")
    return explained(otherwise)
