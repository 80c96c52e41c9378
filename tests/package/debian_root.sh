# SPDX-License-Identifier: Apache-2.0
# Bare Debian systems for tests, to be sourced: folders that debootstrap fills, and chroot. They need
# root and a Debian mirror (MIRROR, or the one apt uses).

# debian_root FOLDER SUITE [PACKAGE,...]: makes the system, or leaves the one that is there.
debian_root() {
    [ "$(id -u)" = 0 ] || { echo "skipped: not root"; exit 77; }
    command -v debootstrap >/dev/null || { echo "skipped: no debootstrap"; exit 77; }
    [ ! -e "$1/etc/mx-test-root" ] || return 0
    mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(CODENAME)' |
        awk '$2 == "Debian" && $3 == "bookworm" { print $1; exit }')}
    debootstrap --variant=minbase ${3:+"--include=$3"} "$2" "$1" "${mirror:-http://deb.debian.org/debian}"
    # How this machine reaches a mirror: name resolution, proxies, and their certificates.
    cp /etc/resolv.conf /etc/hosts "$1/etc/"
    apt-config dump | grep -i '::proxy ' >"$1/etc/apt/apt.conf.d/90proxy" || true
    if [ -x "$1/usr/sbin/update-ca-certificates" ]; then
        cp -r /usr/local/share/ca-certificates "$1/usr/local/share/"
        chroot "$1" update-ca-certificates >/dev/null
    fi
    touch "$1/etc/mx-test-root"
}

# in_root FOLDER COMMAND...: in a separate environment; the mounts disappear with it.
in_root() {
    unshare --mount --fork sh -eu -c '
        root=$1
        shift
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        exec chroot "$root" env -i HOME=/root TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
    ' sh "$@"
}
