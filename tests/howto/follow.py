#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what a page of docs/howto says: writes the files that its `diff` blocks change or add.

    follow.py PAGE                   lists these files
    follow.py PAGE SOURCES SCRATCH   writes them, changed, to the folder SCRATCH

A block names its file in a line `+++ PATH`. Hunks begin with `@@`, without line numbers: the lines of a
hunk that are not added must occur once in the file. A block that begins with `--- /dev/null` adds a file.
"""

import re
import sys
from pathlib import Path


def blocks_of(page):
    """The `diff` blocks of a page, as (file, is new, hunks)."""
    for indent, text in re.findall(r"^( *)```diff\n(.*?)^\1```", page, re.M | re.S):
        lines = [line[len(indent):] or " " for line in text.splitlines()]
        new = lines[0] == "--- /dev/null"
        if not lines[0].startswith("--- ") or not lines[1].startswith("+++ "):
            sys.exit("a diff block must begin with two lines, --- PATH and +++ PATH")
        hunks = []
        for line in lines[2:]:
            if line.startswith("@@"):
                hunks.append([])
            else:
                hunks[-1].append(line)
        yield lines[1][4:], new, hunks


def changed(name, text, hunks):
    for hunk in hunks:
        before = "".join(line[1:] + "\n" for line in hunk if line[0] != "+")
        after = "".join(line[1:] + "\n" for line in hunk if line[0] != "-")
        found = ("\n" + text).count("\n" + before) if before else int(text == "")
        if found != 1:
            sys.exit(f"{name}: these lines of the page occur {found} times:\n{before}")
        text = ("\n" + text).replace("\n" + before, "\n" + after)[1:] if before else after
    return text


def main(arguments):
    if len(arguments) not in (1, 3):
        sys.exit(__doc__)
    page = Path(arguments[0]).read_text()
    blocks = list(blocks_of(page))
    if not blocks:
        sys.exit(f"{arguments[0]} has no diff block")
    files = {}
    for name, new, hunks in blocks:
        if len(arguments) == 1:
            files[name] = None
            continue
        if name not in files:
            files[name] = "" if new else (Path(arguments[1]) / name).read_text()
        files[name] = changed(name, files[name], hunks)
    if len(arguments) == 1:
        print(";".join(files), end="")
        return
    for name, text in files.items():
        to = Path(arguments[2]) / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
