"""How many workers and threads there are, and by which figures: a sentence for each."""

from __future__ import annotations

from poorhttp.plugins.monitor.derived import units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Service


BY_HAND = "; a person has set the number until the next reload"


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
        part, busy = (units.percent(looks[name] / looked) for name in ("free", "no_processor"))
        free = f"the interpreter was free at {part} of {looked} looks"
        if looks["no_processor"]:
            free += f", free without a processor at {busy}"
    by_hand = service["scaling"].get("threads_by_hand")
    return (
        f"{figures['threads']} threads: {waits}, {free}, {changes['added']} were added and "
        f"{changes['ended']} ended{BY_HAND if by_hand else ''}"
    )


def workers_sentence(service: Service) -> str:
    """Return the sentence, without a full stop; empty if the number does not follow the load."""
    found = service["scaling"]
    if not service["workers_follow_load"] or "used" not in found:
        return ""
    held = f", interpreters held at {units.percent(found['held'])} of looks" * bool(found["held"])
    return (
        f"{service['wanted']} workers: {found['in_flight']:.0f} requests in flight, "
        f"{found['used']:.1f} processors used and {found['idle']:.1f} idle{held}, memory for "
        f"{found['room']:.0f} more, {found['added']:.0f} were added and {found['ended']:.0f} ended"
        f"{BY_HAND if found['workers_by_hand'] else ''}"
    )
