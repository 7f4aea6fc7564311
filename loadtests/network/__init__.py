"""Several hosts on one machine, for the lab and the tests: ``hosts`` are network namespaces, at a
switch whose cables ``wire`` makes long, lossy and slow where the kernel does not.
"""
