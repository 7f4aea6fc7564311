#!/bin/sh
# Runs the tests of TLS on a kernel that encrypts: kernel_tls.sh [PYTEST-ARGUMENT ...]
#
# Debian's kernel as a program (packages user-mode-linux and kmod) starts with the files of this
# machine, which it cannot write to, loads its module tls, and runs pytest (tests/tls). It encrypts
# without the instructions that processors have for that, so it says nothing about speed. Needs root
# and 3 GB. LINUX and MODULES name the program and its modules where they are in other places.
set -eu

if [ "$$" != 1 ]; then
    : "${LINUX:=linux.uml}" "${MODULES:=/usr/lib/uml/modules}"
    cd "$(dirname "$0")/../.."
    job=$(mktemp -d)
    trap 'rm -rf "$job"' EXIT
    trap 'exit 1' INT TERM
    {
        printf 'PATH=%s\ncd %s\nset -- ' "$(dirname "$(command -v python)"):$PATH" "$PWD"
        printf "'%s' " "${@:-tests/tls}"
        printf '\nMODULES=%s\n' "$MODULES/$("$LINUX" --version)"
    } >"$job/settings"
    "$LINUX" mem=3G root=/dev/root rootfstype=hostfs rootflags=/ ro quiet con=null con0=null,fd:1 \
        init="$PWD/tests/system/kernel_tls.sh" "JOB=$job/settings" </dev/null | tee "$job/log"
    grep -q '^exit code 0' "$job/log"
    exit
fi

# The first process of the other kernel, which gives it JOB.
. "$JOB"
export PATH HOME=/var/tmp TMPDIR=/var/tmp PYTHONDONTWRITEBYTECODE=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /var/tmp
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
ip link set lo up
for module in crypto/gf128mul crypto/ghash-generic crypto/ctr crypto/gcm lib/crypto/libchacha \
    lib/crypto/libpoly1305 crypto/chacha_generic crypto/poly1305_generic crypto/chacha20poly1305 net/tls/tls; do
    insmod "$MODULES/kernel/$module.ko"
done
code=0
python -m pytest -q -p no:cacheprovider "$@" || code=$?
echo "exit code $code"
sync
echo o >/proc/sysrq-trigger
sleep 60
