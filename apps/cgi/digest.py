#!/usr/bin/env python3
"""Tell how long a body is, and its SHA-256: `curl --data-binary @FILE localhost:8080/digest.py`."""

import hashlib
import sys

digest = hashlib.sha256()
size = 0
while block := sys.stdin.buffer.read(1 << 16):
    digest.update(block)
    size += len(block)
print("Content-Type: text/plain\n")
print(f"{size} {digest.hexdigest()}")
