"""What the debugger's console asks for before it runs anything.

The main process chooses it when it imports this, so that all versions ask for the same, and so that
they all count the same failures: each version has a debugger of its own, and one that is made to
crash must not forget how often somebody has guessed.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType

#: Names a PIN that somebody wants to keep, or `off` (Werkzeug's own variable).
VARIABLE = "WERKZEUG_DEBUG_PIN"

#: Twelve digits: a wrong PIN in a cookie is not counted, so it must not be found by trying.
DIGITS = 12


class Failures:
    """How many wrong PINs were entered, in all versions: an octet in memory that they share.

    It stands in for the `multiprocessing.Value` of Werkzeug.
    """

    def __init__(self) -> None:
        self._fd = os.memfd_create("poorhttp-pin")
        self._lock = allocate_lock()

    @property
    def value(self) -> int:
        """The number."""
        return sum(os.pread(self._fd, 1, 0))

    @value.setter
    def value(self, number: int) -> None:
        os.pwrite(self._fd, bytes([min(number, 255)]), 0)

    def get_lock(self) -> LockType:
        """Return what keeps two threads from counting one failure between them."""
        return self._lock


def _choose_pin() -> str:
    wanted = os.environ.get(VARIABLE, "")
    if wanted == "off":
        return ""
    if wanted.replace("-", "").isdecimal():
        return wanted
    digits = f"{int.from_bytes(os.urandom(16), 'big') % 10**DIGITS:0{DIGITS}d}"
    return "-".join(digits[place : place + 3] for place in range(0, DIGITS, 3))


#: The PIN; empty if the console asks for none.
PIN = _choose_pin()

#: Which pages may ask for the PIN at all: it is in those that were made here.
SECRET = os.urandom(15).hex()

#: Another name for each server: cookies do not know ports, so two servers of a machine share them.
COOKIE = f"__poorhttp_{os.urandom(4).hex()}"

FAILURES = Failures()


def announcement() -> str:
    """Return the line that tells the person at the terminal; once for each start of the server."""
    if not PIN:
        return f"debug: values, consoles and profiles ask for no PIN ({VARIABLE}=off)"
    return f"debug: values, consoles and profiles ask for the PIN {PIN}"
