"""The studies: each folder is one benchmark, named as its command.

Of any study: `study` is the class, `catalogue` the list of all, `command` their command line,
`docs` writes the pages of docs/benchmarks and their figures, `takeaways` the sentence with which
each begins, `engine` takes the steps and stores what was measured
of a server in a round, `sample` is rounds and what is stored of a load, `tables` the tables,
figures and sentences that compare servers, `comparison` whole sections of them, `remote` networks
between client and server.

- `serial/`: one request after another, each on a connection of its own (2010).
- `parallel/`: 100 new requests each second, however slow the responses are (2010).
- `memory/`: memory idle, under load and over time, by line, and leaks (2010).
- `page_latency/`: pages in a loop, from near and from far: `loops` (2005).
- `scalability/`: throughput by number of injectors: `power` (2005).
- `resources/`: CPU time, memory and traffic over time (2005).
- `deadconn/`: throughput and latency beside idle connections (2001).
- `webbench/`: 6,471 files of 64 MB at random (2001).
- `client_effect/`: every client with every server: `influence` (2001).
- `latency_distribution/`: times over the ordered requests: `ordered` (KLone).
- `originals/`: figures of the old studies.
- `bench/`: all servers in all scenarios: `bench` and `show`.
- `overload/`: more requests than can be answered, and short ones beside long ones.
- `adverse/`: dead, slow and large clients: `endure`.
- `lifecycle/`: servers reloaded, upgraded, killed and stopped under load: `operate`.
- `content/`: servers of files, programs and template pages.
- `proxies/`: servers behind a proxy: `proxies` and `gateways`.
- `cluster/`: three hosts behind a balancer.
- `scaling/`: one worker and two, and connections over many: `balance`.
- `reload/`: development servers: `develop`.
- `websocket/`: messages on WebSockets, idle ones, and protocol cases.
- `tls/`: handshakes, answers over TLS, and what testssl.sh finds.
- `uploads/`: a large body for an application that hashes it.
- `compress/`: JSON that is compressed on the fly.
"""
