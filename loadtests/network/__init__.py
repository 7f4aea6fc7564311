"""Several hosts on one machine: network namespaces at a switch whose cables may be slow."""
