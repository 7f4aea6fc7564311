"""The commands of the tutorial and of the guides, run as a reader types them.

page.py          Reader of a page: its files, commands, expected output and hidden comments
runner.py        Runs the steps of a page and compares output
machine.py       The machine of a page: begin.sh makes it in namespaces of its own
init.py          Process 1 of the machine: starts the session and reaps orphans
stand_ins/       Programs that replace those that cannot run there: systemctl, sudo, apt, pip …
test_guides.py   A test for each page, and tests of the runner itself
test_site.py     The site that Sphinx makes of a few pages
test_readme.py   README: its length, numbers, links and pictures

A guide is run from top to bottom on a machine of its own: it has its own network (so
`127.0.0.1:8000`, port 80 and `shop.example.org` are free, and the ports of a page stay as they
are), its own processes, and an overlay over the root of this machine, so that `/etc`, `/srv`,
`/run` and `/var` may be written to and all is gone afterwards. The session is bash, run by the
ordinary user `you` in the empty folder `/home/you`; `poorhttp`, `python3`, `flask` and what else
the test environment has are on the PATH. There is no way out to the Internet.

Commands:

- A block ```` ```console ```` has lines `$ command`. A command goes on in the next line after a
  backslash, in a here document and within quotes; such lines may begin with `> `.
- The lines after a command are its expected output: standard output and standard error, compared
  line by line without spaces at the ends. `...` in a line stands for any text, `...` as a line for
  any number of lines. No line: the output is not compared.
- A command has to end with the exit status 0, unless expected output is given.
- `poorhttp serve`, `poorhttp dev`, `poorhttp TARGET` and `python3 -m poorhttp …` run on until the
  page ends; the runner waits until they say that they listen, and until the expected output has
  come. Such a command interrupts (Ctrl-C) the one before, as a reader does who has one terminal
  for the server; `^C` as the last line of its expected output, or the comment `stop`, interrupts
  it too. With `&` at the end of the line in the page, it goes on beside the next.
- The output of `cat`, `tail`, `grep`, `journalctl`, `systemctl status` and `poorhttp ctl` is
  waited for: they are repeated until they print what is expected.

Files: a block of any other language whose first line is a comment that has a file name only (`#
hello.py`, `; poorhttp.ini`, `// site.js`, `<!-- page.html -->`, `#
/etc/nginx/sites-available/shop`) is written to that file, with that line unless the file is JSON.
Folders above it are made. A relative name counts from the folder in which the session is. Text
after the name (`# hello.py (part)`) makes the block one that is only shown.

Comments, each on a line of its own, hidden from readers:

- `<!-- test: setup: COMMAND -->` runs a command that readers need not see.
- `<!-- test: replace OLD NEW -->` replaces text in all that follows: files, commands, output.
- `<!-- test: shown -->` the next block is neither run nor written.
- `<!-- test: needs PROGRAM … -->` the next block is left out where a program is not installed.
- `<!-- test: runs on: PREFIX -->` commands that begin so run on like `poorhttp serve` (`flask
  run`).
- `<!-- test: wait TEXT -->` waits until a command that runs on prints the text once more
  (`reloaded in`, after a file was written that `poorhttp dev` watches).
- `<!-- test: stop -->` interrupts the commands that run on.
- `<!-- test: full -->` the page is run at the full level only (`pytest --full`): for what takes
  long.
- `<!-- test: not run: REASON -->` nothing of the page is run.

Stand-ins:

- `sudo` runs the command as root of the machine, or as the user after `-u`.
- `systemctl` reads unit files with their drop-ins, checks them with `systemd-analyze verify`, and
  runs services as systemd does: socket units, `NOTIFY_SOCKET`, `ExecReload`, `User=`,
  `DynamicUser=`, `RuntimeDirectory=`, `EnvironmentFile=`, `Type=forking` … It does not lock
  services in, except that `ProtectHome=` and `PrivateTmp=` refuse programs and folders that they
  hide. `journalctl` shows what services print.
- `apt install` checks that the packages are installed here, and starts nginx as Debian does.
- `python3 -m venv` and `pip install` make environments that have the packages of the test
  environment; `pip install` fails for packages that are not in it.
- `certbot` signs with an authority that the machine trusts, and changes the site as certbot does.
- `docker`, `podman` and `kubectl` check that the files exist that they are given, and print
  nothing."""
