"""The load lab: our modes and their peers, same client, same core, in turns.

``python -m loadtests bench`` compares servers, ``show`` runs the experiments behind the promised
figures, ``report`` turns the raw results into Markdown and SVG.
"""
