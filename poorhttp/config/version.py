"""The version of this server: the one place where it is written."""

VERSION = "1.0.0"
