"""Readers of the case files in tests/cases.

blocks.py         Reader of the format of all case files (`tests/cases/schema`)
exchanges.py      Reader of protocol cases (`tests/cases/*.txt`)
gateway.py        Reader of gateway cases (`tests/cases/gateway`)
http2.py          Reader of cases of HTTP/2 (`tests/cases/http2`)
static_files.py   Reader of static-file cases (`tests/cases/static`)
trust.py          Reader of trust cases (`tests/cases/trust`)
"""
