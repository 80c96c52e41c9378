#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the two commands of the README, word for word, in a bare Debian 12 that has git and nothing
# else: debootstrap makes the root, the repository's HEAD is cloned into it, and chroot runs them.
# Not part of ctest: it needs root, debootstrap and a Debian mirror (MIRROR, or the one apt uses).
# Usage: bare_debian.sh ROOT   (an empty or absent folder; keep it and the next run reuses it)
set -eu
repository=$(cd "$(dirname "$0")/../.." && pwd)
root=$1

. "$repository/tests/package/debian_root.sh"
debian_root "$root" bookworm git,ca-certificates

rm -rf "$root/root/mx"
git -C "$repository" bundle create -q "$root/root/mx.bundle" HEAD
# The commands are the first two blocks of sh in the README.
git -C "$repository" show HEAD:README.md |
    awk '/^```/ { inside = /^```sh/; blocks += inside; next } inside && blocks <= 2' \
        >"$root/root/commands"
cat >"$root/root/run.sh" <<'END'
cd /root
git clone -q mx.bundle mx
cd mx
echo "== Debian $(cat /etc/debian_version), $(git log -1 --format='%h %s')"
while read -r command; do
    echo "== $command"
    start=$(date +%s)
    sh -c "$command" </dev/null
    echo "== finished after $(($(date +%s) - start)) s"
done <../commands
END

in_root "$root" sh -eu /root/run.sh
