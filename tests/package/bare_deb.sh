#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A bare Debian 12 without a compiler installs the Debian package, analyses a checkpoint, completes a
# recipe by Tab, reads `man mx`, and removes the package without a trace: afterwards the system has the
# files it had before. Not part of ctest: it needs root, debootstrap and a Debian mirror.
# Usage: bare_deb.sh DEB ROOT   (keep ROOT and the next run reuses it)
set -eu
repository=$(cd "$(dirname "$0")/../.." && pwd)
. "$repository/tests/package/debian_root.sh"
debian_root "$2" bookworm bash-completion,man-db
cp "$1" "$2/root/mx.deb"
cat >"$2/root/run.sh" <<'END'
fail() { echo "$*" >&2; exit 1; }
# Every file except those in which apt, dpkg and man record their work: lists, caches and logs.
files() {
    find / -xdev \( -path /proc -o -path /dev -o -path /root -o -path /tmp -o -path /var/log -o -path /var/cache \
        -o -path /var/lib/apt \) -prune -o -print | grep -v -E '^/var/lib/dpkg/(status|available|lock|triggers)|^/etc/ld.so.cache' |
        sort
    dpkg-query -W
}
cd /root
export DEBIAN_FRONTEND=noninteractive
! command -v cc || fail "there is a compiler"
apt-get -qq update
apt-get -qq purge -y --autoremove mx >/dev/null 2>&1 || true  # left by a run that failed
files >before
apt-get -qq install -y --no-install-recommends ./mx.deb >log 2>&1 || { cat log; exit 1; }

mx synth -o checkpoint.safetensors --quiet
mx analyze checkpoint.safetensors -r mxfp4 -r nvfp4 --html review.html >table
grep '^Verdict' table && grep -c '</html>' review.html >/dev/null || fail "no review"

# The input: the beginning of a recipe, then Tab; the completed line becomes the arguments of echo. The
# first line is from the .bashrc that Debian installs for users, but not for root.
printf '. /usr/share/bash-completion/bash_completion\nmx analyze x -r nvfp4:ro\t\001echo typed: \005even\nexit\n' >keys
{ sleep 5; cat keys; sleep 10; } | script -qec 'bash -i' typescript >/dev/null || true
tr -d '\r' <typescript | grep -q '^typed: mx analyze x -r nvfp4:round=even' || { cat typescript; fail "no completion"; }
echo "Tab: nvfp4:ro becomes nvfp4:round="

man mx | grep -q 'block-scaled\|NAME' || fail "no manual page"
echo "man mx: $(man mx | grep -c .) lines"

apt-get -qq purge -y --autoremove mx >log 2>&1 || { cat log; exit 1; }
files >after
diff before after || fail "removed, it left a trace"
echo "removed: $(wc -l <after) files and packages, as before"
END
in_root "$2" bash -eu /root/run.sh
