"""What is served: files, CGI programs, template pages, mounts, virtual hosts, examples."""
