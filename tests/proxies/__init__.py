"""Servers behind web servers and balancers: gateways, peer trust.

test_configurations.py   The configurations of proxy/: `balanced`, `site`, `http2`, `gateway`
test_gateway_cases.py    The cases of the gateway protocols over real connections
test_gateways.py         nginx, Apache, lighttpd and others before ours by uwsgi, SCGI, FastCGI
test_http2_smuggling.py  Requests of HTTP/2 through HAProxy and nginx: one request or none
test_peer_trust.py       Fields of proxies about the client, believed or not
test_restarts.py         A server is reloaded, replaced, stopped or killed, under load
test_start_command.py    `python -m proxy`, which the Makefile runs: starts and stops all processes
"""
