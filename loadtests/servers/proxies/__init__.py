"""Servers behind a proxy.

- `setups`: pairs of proxy and server, and how both are started.
- `chain`: a proxy and its servers as one: started together, sampled separately, stopped together.
"""
