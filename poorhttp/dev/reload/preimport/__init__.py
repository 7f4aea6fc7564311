"""Imports libraries, and nothing of the project, in the fork server.

preimport.py         imports one module after another
import_scan.py       reads which libraries the project imports
project_imports.py   which modules are the project's own
import_blocker.py    refuses those
import_probe.py      tries an import in another process first
import_effects.py    what an import leaves behind: threads, handlers
code_cache.py        code of modules that each generation imports itself
loaded_modules.py    modules of this process
discard_output.py    drops what is printed
"""
