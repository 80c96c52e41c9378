#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts lines of C++ and CUDA, without comments and blank lines, by folder.

    scripts/count-lines.py [FOLDER...]      (default: libmx apps)
"""

import re
import sys
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
ENDINGS = {".cpp", ".hpp", ".h", ".c", ".cu", ".cuh", ".inc"}
# A literal, whose text may look like a comment, or a comment.
TOKEN = re.compile(r'R"(?P<mark>[^()\\ ]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
                   r"|(?P<comment>//[^\n]*|/\*.*?\*/)", re.S)


def lines_of(text):
    """The number of lines of a source that have more than comments."""
    def kept(found):
        comment = found["comment"]
        return found[0] if comment is None else "\n" * comment.count("\n")
    return sum(bool(line.strip()) for line in TOKEN.sub(kept, text).split("\n"))


def counted(folder, root=SOURCE):
    """Lines by folder, two levels deep."""
    lines = Counter()
    for path in sorted((root / folder).rglob("*")):
        if path.suffix in ENDINGS and path.is_file():
            lines["/".join(path.relative_to(root).parts[:-1][:2])] += lines_of(path.read_text())
    return lines


def main():
    lines = sum((counted(folder) for folder in sys.argv[1:] or ["libmx", "apps"]), Counter())
    for folder, count in sorted(lines.items()):
        print(f"{count:8,}  {folder}")
    print(f"{sum(lines.values()):8,}")


if __name__ == "__main__":
    main()
