#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A bare Debian (12, or another SUITE) with Python and without a compiler installs the wheel of libmx from
# files alone and runs its tests; those that need mx or PyTorch are skipped. Not part of ctest: it needs root,
# debootstrap, a Debian mirror and, to fetch NumPy, ml_dtypes and pytest, the package index.
# Usage: bare_wheel.sh WHEEL ROOT [SUITE]   (keep ROOT and the next run reuses it)
set -eu
repository=$(cd "$(dirname "$0")/../.." && pwd)
. "$repository/tests/package/debian_root.sh"
debian_root "$2" "${3:-bookworm}" python3-venv
rm -rf "$2/root/mx" "$2/root/wheels"
mkdir -p "$2/root/mx" "$2/root/wheels"
git -C "$repository" archive HEAD python examples datasets README.md | tar -x -C "$2/root/mx"
version=$(in_root "$2" python3 -c 'import platform; print(platform.python_version())')
python3 -m pip download -q -d "$2/root/wheels" --python-version "$version" --only-binary :all: "$1" \
    ml_dtypes pytest
cat >"$2/root/run.sh" <<'END'
cd /root
for compiler in cc gcc g++ clang; do
    ! command -v $compiler || { echo "there is a compiler" >&2; exit 1; }
done
rm -rf fresh
python3 -m venv fresh
fresh/bin/pip install -q --disable-pip-version-check --no-index --find-links wheels libmx ml_dtypes pytest
cd fresh
bin/python3 --version
bin/python3 -B -m pytest -q -p no:cacheprovider /root/mx/python/tests
END
in_root "$2" sh -eu /root/run.sh
