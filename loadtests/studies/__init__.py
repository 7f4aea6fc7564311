"""The studies: each folder is one benchmark, named as its command; the list of all.

Two folders have a second command: `bench` has `show`, `proxies` has `gateways`.

- `study`: the class of a study.
- `catalogue`: the list of all studies.
- `command`: the command line of the studies.
- `engine`: takes the steps of a study, and stores what was measured.
- `sample`: loads a running server and stores the result; the order of rounds.
- `remote`: networks between client and server.
- `tables`: tables, figures and sentences that compare servers.
- `comparison`: sections that compare servers, scenario by scenario.
- `takeaways`: the sentence with which each page of benchmarks begins.
- `then_and_now`: the page of `then_and_now.ini`, findings of the five old studies beside today's.
- `docs`: writes the pages of docs/benchmarks, which `benchmarks.ini` lists, and their figures.

The studies; the reports of some end with the `method.md` of their folder:

- `serial/`: one request after another, each on a connection of its own (2010).
- `parallel/`: 100 new requests each second, however slow the responses are (2010).
- `memory/`: memory idle, under load and over time, by line, and leaks (2010).
- `loops/`: pages in a loop, from near and from far (2005).
- `power/`: throughput by number of injectors (2005).
- `resources/`: CPU time, memory and traffic over time (2005).
- `deadconn/`: throughput and latency beside idle connections (2001).
- `webbench/`: 6,471 files of 64 MB at random (2001).
- `influence/`: every client with every server (2001).
- `ordered/`: times over the ordered requests (KLone).
- `originals/`: figures of the old studies.
- `bench/`: all servers in all scenarios: `bench` and `show`.
- `overload/`: more requests than can be answered, and short ones beside long ones.
- `auto/`: threads that follow the load, beside fixed numbers of them.
- `endure/`: dead, slow and large clients.
- `operate/`: servers reloaded, upgraded, killed and stopped under load.
- `content/`: servers of files, programs and template pages.
- `proxies/`: servers behind a proxy: `proxies` and `gateways`.
- `cluster/`: three hosts behind a balancer.
- `balance/`: one worker and two, and connections over many.
- `develop/`: development servers: from a save to the new response.
- `websocket/`: messages on WebSockets, idle ones, and protocol cases.
- `tls/`: handshakes, answers over TLS, and what testssl.sh finds.
- `http2/`: requests on streams of HTTP/2, memory of connections and streams.
- `uploads/`: a large body for an application that hashes it.
- `compress/`: JSON that is compressed on the fly.
"""
