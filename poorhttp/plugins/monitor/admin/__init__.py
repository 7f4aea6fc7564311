"""The address `admin`: health checks, metrics, the status document and commands.

endpoint.py      the process that answers at the address
protection.py    tokens, and requests that pages of other sites make
application.py   the WSGI application of that process
questions.py     its questions to the main process
model.py         shapes of the status document, from which all views are rendered
figures.py       sums the figures of all workers of a service
finished.py      the slowest requests, the last errors and refusals
status.py        builds the status document in the main process
commands.py      executes commands of operators in the main process
"""
