# SPDX-License-Identifier: Apache-2.0
"""What docs/howto/read-remote-files.md says of speed and memory: mx over a file of a server on
loopback with a limited bandwidth, with and without 50 ms before each answer. measure.py MX"""
import pathlib
import subprocess
import sys
import tempfile
import time

import server

MX = pathlib.Path(sys.argv[1]).resolve()
CHILD = ('import resource, subprocess, sys; '
         'subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); '
         'print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)')

with tempfile.TemporaryDirectory() as folder:
    big = pathlib.Path(folder) / 'big.bin'
    with open(big, 'wb') as zeros:
        zeros.truncate(5 << 28)
    here = server.Server(folder)

    def run(path, bandwidth, latency, *words):
        """Seconds, and MiB of peak memory."""
        here.reset()
        here.traps.bandwidth, here.traps.latency = bandwidth, latency
        start = time.monotonic()
        done = subprocess.run([sys.executable, '-c', CHILD, MX, 'analyze',
                               f'{here.address}/files/{path}', *words, '--quiet'],
                              capture_output=True, text=True, check=True)
        return time.monotonic() - start, int(done.stdout) / 1024

    raw = ('--dtype', 'F32', '--shape', '81920x4096')
    for megabytes in (50, 100, 200, 400):
        for latency in (0, 0.05):
            seconds, _ = run('big.bin', megabytes * 1e6, latency, '-r', 'mxfp4', *raw)
            print(f'{megabytes} MB/s, {latency * 1000:.0f} ms: '
                  f'{(5 << 28) / seconds / megabytes / 1e6:.2f} of the bandwidth')
    for recipe in ('mxfp4', 'nvfp4'):
        _, peak = run('big.bin', 0, 0, '-r', recipe, *raw)
        print(f'{recipe}: {peak:.0f} MiB')
