#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time of a build: user and system time of each compile, independent of the load of the machine.

As the compiler launcher it runs the compiler and adds a line to a log; otherwise it prints such a log: the
total, the number of files, and the slowest of them.

    build-times.py LOG [SLOWEST]             print (default: the 20 slowest files)
    build-times.py --launch LOG COMPILER...  compile, and add to LOG
"""

import os
import resource
import subprocess
import signal
import sys


def launch(log, command):
    code = subprocess.call(command)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    source = command[command.index("-c") + 1] if "-c" in command[:-1] else command[-1]
    # One write of less than a page: compiles that end at the same time do not mix their lines.
    line = f"{used.ru_utime + used.ru_stime:.2f}\t{source}\n"
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(file, line.encode())
    os.close(file)
    return code if code >= 0 else 1


def report(log, slowest):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as others do that print lists
    with open(log, encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    times = sorted(((float(seconds), source) for seconds, source in rows), reverse=True)
    print(f"{sum(seconds for seconds, _ in times):.0f} s of processor time, {len(times)} files")
    for seconds, source in times[:slowest]:
        print(f"{seconds:7.1f} s  {os.path.relpath(source)}")
    return 0


def main(arguments):
    if len(arguments) >= 3 and arguments[0] == "--launch":
        return launch(arguments[1], arguments[2:])
    if len(arguments) in (1, 2) and not arguments[0].startswith("-"):
        return report(arguments[0], int(arguments[1]) if len(arguments) == 2 else 20)
    print(__doc__, file=sys.stderr)
    return 2


sys.exit(main(sys.argv[1:]))
