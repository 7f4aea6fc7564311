"""The load lab: compares our modes with other servers, with the same client on the same core.

``python -m loadtests advise TARGET`` finds a configuration for an application; ``serial``,
``parallel`` and eight more are the tests of the old studies (``studies``), ``compare`` runs all.
``bench`` compares servers, ``show`` runs the experiments behind the promised figures, ``endure``
those with clients that are a nuisance, ``operate`` those in which servers are reloaded, killed and
stopped, ``content`` compares servers of files and programs, ``proxies`` and ``gateways`` put them
behind others, ``develop`` saves files; ``report`` turns raw results into pages, tables and plots.

A request's way through it: a study plans steps (``studies``), ``bench`` takes them one by one, each
starts a server (``servers``, ``process``), lets a client ask it (``clients``), reads what it cost
(``measure``, ``sampler``) and appends records (``store``); ``results`` puts rounds together, and
``paper`` prints what the study says of them.
"""
