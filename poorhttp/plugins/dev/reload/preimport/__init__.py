"""Preimport: the fork server imports libraries once, before it is forked for each generation.

preimport.py         imports modules one at a time, each after a probe
import_scan.py       finds the libraries that the project's source imports
project_imports.py   finds modules as a generation would, and tells the project's from others
import_blocker.py    blocks imports of the project's modules
import_probe.py      tries an import in a throw-away process
import_effects.py    detects threads, descriptors and other effects of an import
code_cache.py        caches code of library modules that each generation imports itself
loaded_modules.py    modules of this process and their folders
discard_output.py    discards output during an import
"""
