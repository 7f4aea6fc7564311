# Makes the machine of a page, within new namespaces: begin.sh FOLDER PYTHON INIT PATH...
# FOLDER is an empty folder of the runner; each PATH is a folder that has to be seen in the machine.
set -e
folder=$1 python=$2 init=$3
shift 3
mount -t tmpfs -o mode=755 tmpfs "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
root=$folder/root
for path; do
    if [ "$(stat -c %d "$path")" != "$(stat -c %d /)" ]; then
        mkdir -p "$root$path"
        mount --bind "$path" "$root$path"
    fi
    # The ordinary user of the machine reads the interpreter and this checkout.
    while [ "$path" != / ]; do
        [ -x "$root$path" ] && chmod a+rx "$root$path" 2>/dev/null || :
        path=$(dirname "$path")
    done
done
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,ro,bind "$root/proc/sys"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir -m 1777 "$root/run/lock"
ip link set lo up
exec chroot "$root" "$python" -ES "$init"
