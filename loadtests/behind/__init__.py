"""Servers behind a proxy: ours behind those of `proxy/`, and gateway protocols beside uWSGI.

``setups`` is who stands behind whom and how both are started, ``chain`` starts and watches them,
``experiments`` what is asked, and ``promises`` and ``report`` tell what came of it.
"""
