#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the writers of the interop tests (tests/interop/requirements.txt) into build/interop, or
# Debian's packages of some of them if that fails; and for tests/python an environment with Debian's
# PyTorch, build/torch; and nvdisasm into build/count. Tests skip what cannot be installed, so this never fails; without a network it
# gives up after some seconds.
set -u
cd "$(dirname "$0")/.."
mkdir -p build
log=build/interop.log

# Debian's PyTorch is for Debian's Python and NumPy, and has no CUDA to fetch.
if [ ! -x build/torch/bin/python3 ]; then
    if scripts/install-dependencies.sh torch >build/torch.log 2>&1 &&
        /usr/bin/python3 -c 'import torch' 2>>build/torch.log &&
        /usr/bin/python3 -m venv --system-site-packages build/torch >>build/torch.log 2>&1 &&
        timeout 60 build/torch/bin/python3 -m pip --timeout 5 --retries 1 install --quiet \
            --only-binary :all: nanobind-backend==1.0.0 pytest==9.2.0 ml_dtypes==0.5.4 \
            >>build/torch.log 2>&1; then
        echo "PyTorch for tests/python: build/torch"
    else
        rm -rf build/torch
        echo "no PyTorch for tests/python ($(tail -n 1 build/torch.log))" >&2
    fi
fi

# What disassembles kernels for scripts/count-instructions.py, where something compiles them.
if { command -v nvcc || [ -x /usr/local/cuda/bin/nvcc ]; } >/dev/null &&
    ! command -v nvdisasm >/dev/null && [ ! -x build/count/bin/python3 ]; then
    if python3 -m venv build/count >build/count.log 2>&1 &&
        timeout 60 build/count/bin/python3 -m pip --timeout 5 --retries 1 install --quiet \
            --only-binary :all: nvidia-cuda-nvdisasm==13.5.37 >>build/count.log 2>&1; then
        echo "nvdisasm for counts of instructions: build/count"
    else
        rm -rf build/count
        echo "no nvdisasm for counts of instructions, see build/count.log" >&2
    fi
fi

# Servers for tests/remote: apart from the writers, because moto's S3 is larger than all of them.
install_servers() {
    build/interop/bin/python3 -c 'import moto, RangeHTTPServer' 2>/dev/null ||
        timeout 90 build/interop/bin/python3 -m pip --timeout 5 --retries 1 install --quiet \
            --only-binary :all: moto==5.2.1 flask==3.1.3 flask-cors==6.0.5 \
            rangehttpserver==1.4.0 >>$log 2>&1 ||
        echo "no servers for tests/remote, see $log" >&2
}
if [ -x build/interop/bin/python3 ]; then
    install_servers
    exit 0
fi
if python3 -m venv build/interop >$log 2>&1 &&
    timeout 120 build/interop/bin/python3 -m pip --timeout 5 --retries 1 install --quiet \
        --only-binary :all: -r tests/interop/requirements.txt >>$log 2>&1; then
    echo "writers of the interop tests: build/interop"
    install_servers
    exit 0
fi
rm -rf build/interop
echo "no writers for build/interop ($(tail -n 1 $log)); trying Debian's packages" >&2
scripts/install-dependencies.sh interop >>$log 2>&1 ||
    echo "the interop tests will skip what is not installed, see $log" >&2
exit 0
