"""`python -m poorhttp` is the command `poorhttp`."""

# Without `from __future__`, which would be imported from the current folder.
import os
import sys


def leave_current_folder() -> None:
    """Take the current folder from `sys.path`, where `python -m` has put it.

    The command imports modules of the standard library when it needs them. A file of the same name
    in the current folder, which may be somebody else's, would be run in their place. Targets are
    still found in the current folder.
    """
    if getattr(sys.flags, "safe_path", sys.flags.isolated):
        return
    try:
        here = os.getcwd()
    except OSError:
        here = ""
    if sys.path and sys.path[0] in ("", here):
        del sys.path[0]


if __name__ == "__main__":
    leave_current_folder()
    from poorhttp.cli import main

    sys.exit(main())
