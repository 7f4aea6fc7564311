"""Servers behind web servers and balancers: gateways, peer trust.

test_balanced.py         The configurations `balanced` of proxy/: two servers behind each
test_client_address.py   Client addresses through the gateways of proxy/, with forged fields
test_gateway_cases.py    The cases of the gateway protocols over real connections
test_gateways.py         nginx, Apache, lighttpd and others before ours by uwsgi, SCGI, FastCGI
test_haproxy_drain.py    HAProxy before two servers, one of which is stopped: no error
test_http2_smuggling.py  Requests of HTTP/2 through HAProxy and nginx: one request or none
test_http2_upstream.py   HAProxy, Apache and Caddy speak HTTP/2 to our server
test_peer_trust.py       Fields of proxies about the client, believed or not
test_restarts.py         One of two servers is replaced, stopped or killed, under load
test_start_command.py    `python -m proxy`, which the Makefile runs: starts and stops all processes
test_tls_site.py         The configurations `site` of proxy/: TLS and files before one server
"""
