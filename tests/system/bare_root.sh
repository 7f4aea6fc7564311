#!/bin/sh
# Runs README's two commands in a bare Debian: bare_root.sh [--user] [SUITE] [MAKE-VARIABLE=VALUE ...]
#
# Makes a root folder of SUITE (bookworm) in which are Python, git and make only, clones the last
# commit into it, runs `make run` until /light and /heavy are answered, then `make test`, and prints
# the minutes of both. With --user an ordinary user runs them, for whom root has installed nothing
# but what is built with. Nothing of this machine is seen there but settings for the package
# registries. Needs root, debootstrap, and 8 GB in TMPDIR.
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

user=root home=/root
if [ "${1:-}" = --user ]; then user=somebody home=/home/somebody; shift; fi
suite=bookworm
case ${1:-} in '' | *=*) ;; *) suite=$1; shift ;; esac
project=$(cd "$(dirname "$0")/../.." && pwd)
root=$BARE_ROOT

mount --bind "$root" "$root"
debootstrap --variant=minbase --include=python3,git,make "$suite" "$root" >"$root/log" 2>&1 || {
    tail -n 20 "$root/log"
    exit 1
}
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
git clone --quiet --no-hardlinks "$project" "$root/srv/poorhttp"

# Settings for the registries: name resolution, apt, pip, cargo, proxies and certificates.
cp /etc/resolv.conf /etc/hosts "$root/etc/"
find /etc/apt/apt.conf.d -type f -exec grep -qE '^ *Acquire' {} \; -exec cp {} "$root/etc/apt/apt.conf.d" \;
for file in "$HOME/.config/pip/pip.conf" /etc/pip.conf; do
    if [ -e "$file" ]; then cp "$file" "$root/etc/pip.conf"; fi
done
mkdir "$root/.cargo"
if [ -e "$HOME/.cargo/config.toml" ]; then cp "$HOME/.cargo/config.toml" "$root/.cargo"; fi
env | grep -iE '^([a-z]+_proxy|(PIP|CARGO_(HTTP|NET|REGISTR[A-Z]*)|RUSTUP_(DIST|UPDATE))_[A-Z_]+|[A-Z_]*(SSL_CERT|CA_BUNDLE)[A-Z_]*)=' |
    while IFS='=' read -r name value; do
        if [ -f "$value" ]; then
            # Where it is looked for, and where the package ca-certificates takes it from.
            mkdir -p "$root$(dirname "$value")" "$root/usr/local/share/ca-certificates"
            cp "$value" "$root$value"
            cp "$value" "$root/usr/local/share/ca-certificates/registries.crt"
        elif [ -d "$value" ] && [ ! -d "$root$value" ]; then
            continue
        fi
        printf '%s=%s\n' "$name" "$value"
    done >"$root/settings"

mkdir "$root/outside"
cd "$root"
pivot_root . outside
umount -l /outside
cd /srv/poorhttp

# A command as the user, in an environment of its own.
as_user() {
    while read -r setting; do set -- "$setting" "$@"; done </settings
    setpriv --reuid=$user --regid=$user --init-groups \
        env -i HOME=$home PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin "$@"
}

minutes() {
    awk "BEGIN { printf \"%.1f minutes\\n\", ($(date +%s) - $1) / 60 }"
}

if [ $user != root ]; then
    useradd --create-home $user
    chown -R $user: .
    echo "make test before anything is installed:"
    if as_user make test; then exit 1; fi
    user=root as_user python3 tests/packages.py build
fi
. /etc/os-release
echo "$PRETTY_NAME, $(python3 --version), $user"

began=$(date +%s)
as_user python3 - "$@" <<'PROGRAM'
import re, subprocess, sys, time, urllib.request

with open("/tmp/run.log", "w+") as log:
    make = subprocess.Popen(["make", "run", *sys.argv[1:]], stdout=log, stderr=log)
    while not (found := re.search(r" listening on (http://\S+)", open(log.name).read())):
        if make.poll() is not None:
            sys.exit(open(log.name).read())
        time.sleep(0.2)
    for path in ("/light", "/heavy"):
        with urllib.request.urlopen(found[1] + path, timeout=60) as answer:
            print(path, answer.status, len(answer.read()), "bytes")
    make.terminate()
    make.wait()
PROGRAM
echo "make run: $(minutes "$began") until it had answered"

began=$(date +%s)
code=0
as_user make test "$@" || code=$?
echo "make test: $(minutes "$began"), exit code $code"
exit $code
