"""Serves the application that a file of PasteDeploy declares, as Pyramid's projects have them.

target.py   `paste:FILE#NAME`: the application that a file declares
runner.py   `use = egg:poorhttpd#main`: serves the application of a file, for `pserve`
"""
