"""Parsers and other functions, called in the test's own process.

test_address.py              Parser of addresses to listen on
test_case_reader.py          Protocol cases: those that fail are named, and the page of them
test_certificates.py         Certificate files: mistakes, warnings, what is watched
test_config.py               Sources of settings, their precedence, and messages about mistakes
test_contract.py             What plug-ins import from the core: only what the reference lists
test_cookies.py              The parser of the `Cookie` header, beside `http.cookies`
test_decoding_limits.py      Content codings, JSON, part headers, in dispatch tables and pages
test_dispatch_api.py         The dispatch-table API: table, hooks, results, the request, forms
test_durations_plugin.py     The pytest plugin for the tests that came nearest to their limit
test_foreign_event_loop.py   The reactor's descriptor in another event loop
test_form_fields.py          Parser of query and form fields, compared with the standard library
test_hangs_plugin.py         The pytest plugin for tests that hang
test_html_escape.py          HTML escaping, compared with markupsafe
test_ini.py                  Parser of ini files, with the line of each option
test_internals_pages.py      docs/internals: the files, classes and functions that pages name exist
test_option_parsers.py       Parsers of option values
test_options.py              The option table, the settings made from it, and its reference page
test_page_code.py            Optimised code of template pages, compared with Mako's own
test_programs.py             `make programs`: exact versions, what is a failure, the table
test_resources.py            CPUs and memory that may be used: affinity, limits of cgroups
test_routes.py               Routes from settings: the list for the core, and the application
test_targets.py              Loading of targets, and messages about those that cannot be loaded
test_watched_files.py        Files of a project that the development server watches
test_worker_count.py         How many workers `workers = auto` decides on, in simulated loads
test_worker_options.py       the options of a reactor are the same in Python and Rust
"""
