"""Run by gdb: writes each function of the crates that the main thread of a server calls.

Behind each function stands the address of the stack at the call: that of a function that another
one has called is lower.

RECORD_FUNCTIONS names a file with a line for each function: its address in the extension, the text
to write. RECORD_TO is the file to write to.
"""

from __future__ import annotations

import os

import gdb  # type: ignore[import-untyped]

OUTPUT = os.open(os.environ["RECORD_TO"], os.O_WRONLY | os.O_APPEND)


class Call(gdb.Breakpoint):  # type: ignore[misc]
    """Writes its text whenever a function is called, and goes on."""

    def __init__(self, address: int, text: str) -> None:
        super().__init__(f"*{address}", internal=True)
        self.text = text

    def stop(self) -> bool:
        """Called by gdb at each call; false, because the server is to go on."""
        if gdb.selected_thread().num == 1:
            stack = int(gdb.parse_and_eval("$sp"))
            os.write(OUTPUT, f"{self.text} {stack}\n".encode())
        return False


def loaded_at() -> int:
    """The address at which the extension is loaded."""
    with open(f"/proc/{gdb.selected_inferior().pid}/maps", encoding="utf-8") as maps:
        return min(int(line.partition("-")[0], 16) for line in maps if "/_core." in line)


gdb.execute("set confirm off")
# Breakpoints are addresses: reading the symbols would take minutes.
gdb.execute("set auto-solib-add off")
gdb.execute("set breakpoint always-inserted on")
gdb.execute("handle SIGTERM SIGINT SIGPIPE nostop noprint pass")
gdb.execute("catch load _core")
gdb.execute("run")
base = loaded_at()
with open(os.environ["RECORD_FUNCTIONS"], encoding="utf-8") as functions:
    for function in functions:
        place, _, text = function.rstrip().partition(" ")
        Call(base + int(place, 16), text)
gdb.execute("continue")
