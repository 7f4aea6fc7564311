"""The modes, their processes and threads, and applications that fail in them."""
