"""The studies, each a file or a folder named as its command, and what all of them have in common.

- `study`: the class of a study.
- `catalogue`: the list of all studies, each with a sentence.
- `command`: the command line of the studies.
- `engine`: trials of servers in rounds; takes the steps of a study, and stores what was measured.
- `sample`: loads a running server; times, rates and the CPU time of the server.
- `remote`: networks between client and server.
- `tables`: tables, figures and sentences that compare servers.
- `comparison`: sections that compare servers, scenario by scenario.
- `takeaways`: sentences of the pages of docs/benchmarks, with numbers of tables in them.
- `docs`: writes these pages, which `benchmarks.ini` and `then_and_now.ini` list, and their figures.

- `originals`: figures of the old studies, as they are printed there (`originals.json`).

A Markdown file beside a study says how it measures.
"""
