"""Parsers and other functions, called in the test's own process.

test_certificates.py         Certificate files: mistakes, warnings, what is watched
test_config.py               Ini files, sources of settings, precedence, messages about mistakes
test_contract.py             What plug-ins import from the core: only what the reference lists
test_decoding_limits.py      Content codings, JSON, part headers, in dispatch tables and pages
test_dispatch_api.py         The dispatch-table API: table, hooks, results, the request, forms
test_fields_and_cookies.py   Parsers of the `Cookie` header, of queries and of forms
test_foreign_event_loop.py   The reactor's descriptor in another event loop
test_internals_pages.py      docs/internals: the files, classes and functions that pages name exist
test_options.py              Parsers of options and addresses, the option table, the reference page
test_page_code.py            Optimised code of template pages and HTML escaping
test_resources.py            CPUs and memory that may be used: affinity, limits of cgroups
test_routes.py               Routes from settings: the list for the core, and the application
test_targets.py              Loading of targets, and messages about those that cannot be loaded
test_tools_of_tests.py       Plugins of pytest, readers of cases, `make programs`
test_watched_files.py        Files of a project that the development server watches
test_worker_count.py         How many workers `workers = auto` decides on, in simulated loads
test_worker_options.py       the options of a reactor are the same in Python and Rust
"""
