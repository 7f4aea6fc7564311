"""Compares the server's memory and instructions between two commits, in one run.

- `builds`: the server of a commit, or of the working tree, built and ready to run.
- `instructions`: instructions of a kept request, a POST, a file and a handshake, by callgrind.
- `footprint`: memory of each mode, of a bare interpreter and of other servers, one at a time.
- `footprint.sh`: starts and measures them without an interpreter of its own.
"""
