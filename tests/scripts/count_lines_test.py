#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/count-lines.py counts as a line."""

import tempfile
import unittest
from pathlib import Path

from script import load

count = load("count-lines.py")


class Count(unittest.TestCase):
    def test_comments_and_blank_lines_do_not_count(self):
        self.assertEqual(count.lines_of("int a;  // one\n\n   \n// none\n/* none\n\nnone */\n  /* one */ int b;\n"), 2)

    def test_literals_may_look_like_comments(self):
        self.assertEqual(count.lines_of('"http://a \\" // b";\n"/*";\nint a;\n"*/";\n'), 4)
        self.assertEqual(count.lines_of('R"(\n// text\n\n/* text\n)"\nint a; /* b\n*/\n'), 5)
        self.assertEqual(count.lines_of("char a = '\"';  // \"\nint b = 1'000'000;\n// '\nchar c = '/';\n"), 3)

    def test_folders_are_two_levels_deep(self):
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            for path in ["a/b/x.cpp", "a/b/c/y.cu", "a/z.hpp", "a/b/text.md"]:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text("int a;\n")
            self.assertEqual(dict(count.counted("a", root)), {"a/b": 2, "a": 1})


if __name__ == "__main__":
    unittest.main()
