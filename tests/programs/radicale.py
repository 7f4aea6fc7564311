"""The calendar and address book server Radicale, with caldav and vdirsyncer as its clients."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from tests.programs.running.application import Application, Steps

CONFIGURATION = """
[auth]
type = htpasswd
htpasswd_filename = users
htpasswd_encryption = plain
[storage]
filesystem_folder = collections
"""

VDIRSYNCER = """
[general]
status_path = "status/"
[pair contacts]
a = "local"
b = "server"
collections = [["friends", "friends", "friends"]]
metadata = ["displayname"]
[storage local]
type = "filesystem"
path = "contacts/"
fileext = ".vcf"
[storage server]
type = "carddav"
url = "{url}"
username = "ann"
password = "secret"
"""

CARD = """BEGIN:VCARD
VERSION:3.0
UID:card-{number}
FN:Jörg {number}
N:{number};Jörg;;;
NOTE:{note}
END:VCARD
"""

#: When the first event begins.
BEGIN = datetime(2026, 1, 1, 10, tzinfo=timezone.utc)


class Radicale(Application):
    requirements = ("radicale==3.9.0", "caldav==3.6.0", "vdirsyncer==0.21.0")
    target = "radicale"
    environ = ("RADICALE_CONFIG=radicale.conf",)

    def prepare(self) -> None:
        Path("radicale.conf").write_text(CONFIGURATION)
        Path("users").write_text("ann:secret\n")
        Path("vdirsyncer.conf").write_text(VDIRSYNCER.format(url=self.url))
        for number in range(30):
            card = Path(f"contacts/friends/card-{number}.vcf")
            card.parent.mkdir(parents=True, exist_ok=True)
            card.write_text(CARD.format(number=number, note="long " * 100 * number))

    def drive(self) -> Steps:
        yield from self.calendar()
        yield from self.contacts()

    def calendar(self) -> Steps:
        """What a program with calendars does."""
        import caldav
        from caldav.lib.error import AuthorizationError

        with caldav.DAVClient(self.url, username="ann", password="wrong") as stranger:
            try:
                stranger.principal()
            except AuthorizationError as error:
                yield "wrong password", error.reason
        with caldav.DAVClient(self.url, username="ann", password="secret") as client:
            principal = client.principal()
            yield "principal", principal.url.path
            calendar = principal.make_calendar(name="Wörk", cal_id="work")
            yield "calendars", [[each.name, each.url.path] for each in principal.calendars()]
            for number in range(20):
                begin = BEGIN + timedelta(days=number)
                calendar.save_event(
                    uid=f"event-{number}",
                    dtstart=begin,
                    dtend=begin + timedelta(hours=1),
                    summary=f"Sitzung {number} ✓",
                    description="text " * 2_000,
                )
            yield "events", sorted(map(summary, calendar.events()))
            after, before = BEGIN + timedelta(days=2), BEGIN + timedelta(days=5)
            found = calendar.search(start=after, end=before, event=True)
            yield "events of three days", sorted(map(summary, found))
            known = calendar.objects_by_sync_token(load_objects=False)
            event = calendar.event_by_uid("event-1")
            event.icalendar_component["summary"] = "Geändert"
            event.save()
            calendar.event_by_uid("event-2").delete()
            changes = calendar.objects_by_sync_token(known.sync_token, load_objects=False)
            yield "changes", sorted(each.url.path for each in changes)
            yield "changed", summary(calendar.event_by_uid("event-1"))
            options = client.options(self.url)
            yield "options", [options.status, options.headers["DAV"], options.headers["Allow"]]

    def contacts(self) -> Steps:
        """What a program does that keeps a folder of contacts and the server the same."""
        sync = ("vdirsyncer", "--config", "vdirsyncer.conf")
        here = Path("contacts/friends")
        self.run(*sync, "discover", text="y\n" * 4)
        self.run(*sync, "sync")
        stored = Path("collections/collection-root/ann/friends")
        yield "uploaded", [digest(each) for each in sorted(stored.glob("*.vcf"))]
        (here / "card-1.vcf").unlink()
        changed = here / "card-2.vcf"
        changed.write_text(changed.read_text().replace("Jörg", "Zoë"))
        self.run(*sync, "sync")
        yield "changed", [digest(each) for each in sorted(stored.glob("*.vcf"))]
        for each in (*here.glob("*"), *Path("status").rglob("*")):
            if each.is_file():
                each.unlink()
        self.run(*sync, "discover", text="y\n" * 4)
        self.run(*sync, "sync")
        yield "downloaded", sorted(digest(each) for each in here.glob("*.vcf"))


def summary(event: Any) -> list[str]:
    """When an event begins, and what it is about."""
    component = event.icalendar_component
    return [str(component["dtstart"].dt), str(component["summary"])]


def digest(card: Path) -> str:
    return hashlib.sha256(card.read_bytes()).hexdigest()
