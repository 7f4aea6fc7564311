"""Three hosts behind HAProxy and nginx, restarted one after the other, and one of them cut off.

Each host is a network namespace (``loadtests.network``). ``experiments`` does it under the steady
load of ``loadtests.operations``, ``report`` tells what came of it.
"""
