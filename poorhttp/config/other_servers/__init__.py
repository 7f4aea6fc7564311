"""Options of other servers on the command line; imported only where one is used.

translations.py   translate values of options that are called otherwise there, and read differently
advice.py         what to do instead of options that have no equivalent; `advice.txt` lists them
"""
