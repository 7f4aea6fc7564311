"""What tests and the load lab share; it imports neither.

balancer.py   HAProxy and nginx before several hosts of a network
client.py     An HTTP client that sends exactly the given bytes and reads responses strictly
cluster.py    Hosts with a server each, and a balancer before them
process.py    Processes as /proc has them: alive or not, children, open files
server.py     Programs under test as processes, above all the server
versions.py   A server of tests/apps/versioned.py, with control of the version that is loaded next
cases/        Readers of the case files in tests/cases
network/      Several hosts on one machine: network namespaces at a switch whose cables may be slow
"""
