"""Workers are forked from a process that has loaded the application (`preload`, `refork_after`).

options.py        the options
worker_hooks.py   checks the options
component.py      gives the services with `preload` a spawner
spawner.py        in the main process: runs the preloader, and has it fork workers
preloader.py      the preloader: as the main process sees it, and what it does
refork.py         replaces workers by forks of one that has served, which becomes the preloader
threads.py        threads of an application, which do not survive a fork
"""
