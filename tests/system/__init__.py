"""The program on a machine: commands, users, containers, conf/.

test_cli.py                       The command line: arguments, messages, exit codes, `check`
test_conf_files.py                The files of conf/, each with the program that it configures
test_container.py                 conf/container: the server as process 1, with few privileges
test_first_build.py               What the first build says meanwhile, and if something is missing
test_found_configuration.py       `poorhttp.ini` of the current folder, which nobody has named
test_kubernetes.py                conf/kubernetes: numbers and names agree
test_plugins.py                   Plug-ins of others: the example of the guide; what is refused
test_privileges.py                `user` and `group`: the change of the process's user
test_restricted_environments.py   Start, requests, reload, rotation and stop in each
test_safe_open.py                 Files of root in folders writable by others
test_start_errors.py              Applications, options, ports and folders that cannot be used
test_standard_streams.py          A server without descriptors 0 to 2, and one that is process 1
test_start_messages.py            Messages at the start: ASGI, `manage.py`, other servers' options
test_wheels.py                    Wheels as `make wheels` puts them together, and their name
test_without_plugins.py           The core alone; extension modules: loaded when needed, or named
"""
