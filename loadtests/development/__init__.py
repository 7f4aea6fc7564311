"""Development servers: from a save to the first new response, and its cost, ours beside others.

``projects`` are what somebody works on, made anew for each measurement, ``contestants`` the servers
that they are worked on with, and an ``author`` saves files. ``browsing`` are clients, a process of
its own that asks all the time; ``browsers`` is that process as the lab sees it. What they were told
is held against what was saved in ``judgement``. ``experiments`` puts it together, and ``promises``
and ``report`` tell what came of it.
"""
