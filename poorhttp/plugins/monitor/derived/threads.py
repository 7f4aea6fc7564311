"""How many threads there are, and the figures by which that was decided, in a sentence."""

from __future__ import annotations

from poorhttp.plugins.monitor.derived import units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Service


def threads_sentence(service: Service) -> str:
    """Return the sentence, without a full stop; empty if the number does not follow the load."""
    if not service["threads_follow_load"]:
        return ""
    figures = service["figures"]
    changes, looks = figures["thread_changes"], figures["interpreter_looks"]
    times = figures["thread_waits"]
    waits = "no request has waited for one"
    if times:
        often = "once" if times == 1 else f"{times} times"
        waits = f"requests have waited for one {often}, {units.seconds(figures['thread_wait'])}"
    free = "the interpreter was not looked at"
    if looked := sum(looks.values()):
        part = units.percent(looks["free"] / looked)
        free = f"the interpreter was free at {part} of {looked} looks"
    return (
        f"{figures['threads']} threads: {waits}, {free}, {changes['added']} were added and "
        f"{changes['ended']} ended"
    )
