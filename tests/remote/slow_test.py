# SPDX-License-Identifier: Apache-2.0
"""Servers that send hardly anything: mx gives up in the time that docs/security.md states. All at once,
because they take two minutes of waiting. slow_test.py MX FIXTURES"""
import pathlib
import subprocess
import sys
import time
import unittest

import server

MX, FIXTURES = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
FIRST_RANGE = 120  # seconds
STARTING = 30  # for the processes, on a busy machine

PARTIAL = b'HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-511/100000\r\n'
# What is sent: at the start, then twice a second or all the time.
FAULTS = {
    'nothing': (b'', b'', 0.5),
    'headers': (PARTIAL, b'X-Header: y\r\n', 0.5),
    'a body': (PARTIAL + b'Content-Length: 512\r\n\r\n', b'x', 0.5),
    'an extension of a chunk': (PARTIAL + b'Transfer-Encoding: chunked\r\n\r\n1;', b'x' * 4096, 0.05),
}


class Slow(unittest.TestCase):
    def test_mx_gives_up(self):
        start = time.monotonic()
        runs = {}
        for fault, (begin, piece, pause) in FAULTS.items():
            slow = server.Server(FIXTURES)
            self.addCleanup(slow.shutdown)
            slow.traps.endless, slow.traps.pause = (begin, piece), pause
            runs[fault] = subprocess.Popen([MX, 'tensors', f'{slow.address}/files/numpy.npz'],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for fault, run in runs.items():
            with self.subTest(fault):
                try:
                    left = start + FIRST_RANGE + STARTING - time.monotonic()
                    said = run.communicate(timeout=max(left, 0.1))[1]
                except subprocess.TimeoutExpired:
                    run.kill()
                    run.communicate()
                    self.fail('mx still waits')
                self.assertEqual((run.returncode, said.count('\n')), (3, 1), said)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
