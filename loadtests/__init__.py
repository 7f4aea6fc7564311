"""The load lab: our modes and their peers, same client, same core, in turns.

``python -m loadtests bench`` compares servers, ``show`` runs the experiments behind the promised
figures, ``endure`` those with clients that are a nuisance, ``operate`` those in which servers are
reloaded, killed and stopped, ``content`` compares servers of files and programs, ``proxies`` and
``gateways`` put servers behind others; ``report`` turns the raw results into Markdown and SVG.
"""
