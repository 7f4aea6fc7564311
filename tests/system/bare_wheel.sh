#!/bin/sh
# Installs a wheel in a bare Debian and prints the first answer: bare_wheel.sh WHEEL [SUITE]
#
# Makes a root folder of SUITE (bookworm) in which is Python with venv, but no compiler, and no network. Prints the seconds
# from then until an application has answered, and the megabytes of what was installed. Needs root and debootstrap.
set -eu

if [ "${BARE_ROOT:-}" = "" ]; then
    # Mounts and processes are in namespaces of their own, and end with this process.
    BARE_ROOT=$(mktemp -d)
    chmod 755 "$BARE_ROOT"
    export BARE_ROOT
    trap 'rm -rf --one-file-system "$BARE_ROOT"' EXIT
    trap 'exit 1' INT TERM
    unshare --mount --pid --fork --kill-child --mount-proc sh "$0" "$@"
    exit
fi

wheel=$1 suite=${2:-bookworm}
root=$BARE_ROOT

mount --bind "$root" "$root"
debootstrap --variant=minbase --include=python3-venv "$suite" "$root" >"$root/log" 2>&1 || {
    tail -n 20 "$root/log"
    exit 1
}
mount --rbind /dev "$root/dev"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
mkdir -p "$root/srv/app"
cp "$wheel" "$root/srv/"
cat >"$root/srv/app/hello.py" <<'PROGRAM'
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"Hello, world!\n"]
PROGRAM
cat >"$root/srv/first_answer.py" <<'PROGRAM'
"""Starts the server and prints what it answers first."""
import subprocess, urllib.request

command = ["/srv/venv/bin/poorhttp", "serve", "hello:app", "--bind", "127.0.0.1:0"]
server = subprocess.Popen(command, cwd="/srv/app", stderr=subprocess.PIPE, text=True)
for line in server.stderr:
    if " listening on " in line:
        address = line.split(" listening on ")[1].split()[0]
        with urllib.request.urlopen(address, timeout=60) as answer:
            print(answer.status, answer.read().decode().strip())
        break
    print(line, end="")
server.terminate()
raise SystemExit(server.wait())
PROGRAM
cat >"$root/srv/run" <<'PROGRAM'
set -eu
ip() { python3 -c 'import fcntl, socket, struct; s = socket.socket(); fcntl.ioctl(s, 0x8914, struct.pack("16sh22x", b"lo", 0x49))'; }
ip
if command -v cc gcc cargo; then exit 1; fi
. /etc/os-release
began=$(date +%s%N)
python3 -m venv /srv/venv
/srv/venv/bin/pip install --quiet --no-index /srv/*.whl
python3 /srv/first_answer.py
ended=$(date +%s%N)
size=$(du -sm /srv/venv/lib/python3*/site-packages/poorhttp | cut -f1)
echo "$PRETTY_NAME, $(python3 --version), $(uname -m): $(((ended - began) / 100000000)) tenths of a second, $size MB"
PROGRAM
exec unshare --net env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root chroot "$root" sh /srv/run
