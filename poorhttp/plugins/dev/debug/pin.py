"""The PIN that protects the consoles and the values of variables on error pages.

The main process chooses it when it imports this module, so that all generations ask for the same
PIN and count failures together: a generation that is made to crash must not reset the count.
"""

from __future__ import annotations

import os
from _thread import LockType, allocate_lock

#: Environment variable with a PIN of the user's choice, or `off` (Werkzeug's own).
VARIABLE = "WERKZEUG_DEBUG_PIN"

#: Twelve digits: a wrong PIN in a cookie is not counted, so it must not be found by trying.
DIGITS = 12


class Failures:
    """Count of wrong PINs, in one byte of memory shared by all generations.

    It replaces the `multiprocessing.Value` of Werkzeug.
    """

    def __init__(self) -> None:
        self._fd = os.memfd_create("poorhttp-pin")
        self._lock = allocate_lock()

    @property
    def value(self) -> int:
        """The count."""
        return sum(os.pread(self._fd, 1, 0))

    @value.setter
    def value(self, number: int) -> None:
        os.pwrite(self._fd, bytes([min(number, 255)]), 0)

    def get_lock(self) -> LockType:
        """Return the lock under which threads increment the count."""
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

#: Secret in the pages that this server has made; only these may ask for the PIN.
SECRET = os.urandom(15).hex()

#: Name of the cookie, different for each server: servers on different ports share cookies.
COOKIE = f"__poorhttp_{os.urandom(4).hex()}"

FAILURES = Failures()


def announcement() -> str:
    """Return the message with the PIN, which is printed once at the server's start."""
    if not PIN:
        return f"debug: values, consoles and profiles ask for no PIN ({VARIABLE}=off)"
    return f"debug: values, consoles and profiles ask for the PIN {PIN}"
