"""Files of PasteDeploy, as those of Pyramid.

target.py   `paste:FILE#NAME`: the application that a file declares
runner.py   `use = egg:poorhttpd#main`: serves the application of a file, for `pserve`
"""
