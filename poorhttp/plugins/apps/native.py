"""Functions and classes of the extension module `_core` that only `plugins/apps` uses."""

from poorhttp._core import CgiProgram, find_program, read_fields, reason_phrases, split_target

__all__ = ["CgiProgram", "find_program", "read_fields", "reason_phrases", "split_target"]
