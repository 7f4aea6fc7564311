"""Servers behind web servers and load balancers: configurations, gateways, peer trust."""
