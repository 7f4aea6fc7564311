"""What all tests are written with: clients, servers, processes, protocol cases.

client.py     The HTTP client of the tests, which is the strict one of the load lab
forked.py     Programs of `poorhttp` as forks of one process that has imported the package
process.py    Processes as /proc has them: alive or not, children, open files
server.py     Programs under test as processes, above all the server
versions.py   A server of tests/apps/versioned.py, with control of the version that is loaded next
cases/        Readers of the case files in tests/cases
"""
