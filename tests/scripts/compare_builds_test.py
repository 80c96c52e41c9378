#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/compare-builds.py with programs that are made up: what it must notice, and what not."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from script import ROOT, load

compare_builds = load("compare-builds.py")

PROGRAM = r"""#!/bin/sh
case $1 in
    --version) echo "mx 0.1.0" ;;
    say) echo "first line"; echo "second line" ;;
    complain) echo "mx: no such thing" >&2; exit 2 ;;
    write) printf 'codes\0\001\002' >codes.bin; printf 'a,b\n1,2\n' >table.csv ;;
    prepare) echo "made by the old one" >"$2" ;;
    read) cat "$2" ;;
    bench) echo "quantize  mxfp4  1.25" ;;
esac
"""
LIST = """# a comment
@ prepare in/made
{say|write}
! complain
read in/made
write && say
bench
"""


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "list").write_text(LIST)

    def program(self, name, *replaced):
        text = PROGRAM
        for old, new in replaced:
            self.assertIn(old, text)
            text = text.replace(old, new)
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def compare(self, *replaced, arguments=()):
        """Exit code and output of a comparison with a program in which something was replaced."""
        done = subprocess.run(
            [sys.executable, "-B", ROOT / "scripts" / "compare-builds.py", self.program("old"),
             self.program("new", *replaced), "--list", self.folder / "list", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder)
        return done.returncode, done.stdout

    def test_the_same_program(self):
        code, text = self.compare()
        self.assertEqual((code, text), (0, "7 command lines (6 exit with 0 under OLD, 1 do not) and 4 files "
                                           "compared: no difference\n"))

    def test_standard_output(self):
        code, text = self.compare(("second line", "second lime"))
        self.assertEqual(code, 1)
        self.assertIn("mx say\n  1.stdout: line 2, column 10\n    - second line\n    + second lime\n", text)
        self.assertIn("mx write && mx say\n  2.stdout: line 2", text)
        self.assertIn("2 of 6 cases differ", text)

    def test_a_line_that_is_missing(self):
        code, text = self.compare(('; echo "second line"', ""))
        self.assertEqual(code, 1)
        self.assertIn("- second line\n    + \n", text)

    def test_standard_error(self):
        code, text = self.compare(("no such thing", "no such string"))
        self.assertEqual(code, 1)
        self.assertIn("1.stderr: line 1, column 13", text)

    def test_exit_code(self):
        code, text = self.compare(("exit 2", "exit 3"))
        self.assertEqual(code, 1)
        self.assertIn("mx complain\n  1.exit: line 1, column 1\n    - 2\n    + 3\n", text)

    def test_a_byte_of_a_file(self):
        code, text = self.compare((r"\001", r"\003"))
        self.assertEqual(code, 1)
        self.assertIn("files/codes.bin: byte 6 of 8 and 8\n    - 01 02\n    + 03 02\n", text)

    def test_the_length_of_a_file(self):
        code, text = self.compare((r"\001\002", r"\001"))
        self.assertEqual(code, 1)
        self.assertIn("byte 7 of 8 and 7", text)

    def test_files_that_only_one_writes(self):
        code, text = self.compare((">table.csv", ">cable.csv"))
        self.assertEqual(code, 1)
        self.assertIn("files/cable.csv: only NEW writes it", text)
        self.assertIn("files/table.csv: only OLD writes it", text)

    def test_only_the_old_one_prepares(self):
        code, text = self.compare(("made by the old one", "made by the new one"), arguments=["--keep", "kept"])
        self.assertEqual(code, 0, text)
        self.assertEqual((self.folder / "kept/in/made").read_text(), "made by the old one\n")

    def test_inputs_that_are_changed(self):
        code, text = self.compare(('read) cat "$2"', 'read) cat "$2"; echo >>in/made'))
        self.assertEqual(code, 1)
        self.assertIn("the inputs were changed", text)

    def test_speeds_may_differ_and_names_may_not(self):
        self.assertEqual(self.compare(("1.25", "13.1"))[0], 0)
        self.assertEqual(self.compare(("mxfp4", "mxfp8"))[0], 0)  # any number is like another
        self.assertEqual(self.compare(("quantize", "decode"))[0], 1)

    def test_versions_may_differ(self):
        say = ('"first line"', '"first line of mx 0.1.0"')
        old, new = self.program("old", say), self.program("new", say, ("0.1.0", "0.2.0"))
        arguments = [str(old), str(new), "--list", str(self.folder / "list")]
        done = subprocess.run([sys.executable, "-B", ROOT / "scripts" / "compare-builds.py", *arguments],
                              stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_list_that_is_wrong_about_exit_codes(self):
        (self.folder / "list").write_text("complain\n! say\n? complain\n")
        code, text = self.compare()
        self.assertEqual(code, 1)
        self.assertIn("exit codes [2] under OLD: the list says otherwise", text)
        self.assertIn("2 of 3 cases differ", text)

    def test_an_input_that_cannot_be_made(self):
        (self.folder / "list").write_text("@ complain\nsay\n")
        code, text = self.compare()
        self.assertEqual(code, 1)
        self.assertIn("complain\n  exit codes [2] under OLD: mx: no such thing", text)

    def test_options(self):
        code, text = self.compare(("second line", "second lime"), arguments=["--only", "write"])
        self.assertEqual(code, 0)
        self.assertIn("1 command lines", text)
        self.assertEqual(self.compare(arguments=["--only", "nothing"])[0], 2)
        code, text = self.compare(("second line", "lime"), arguments=["--keep", "kept", "-j", "1"])
        self.assertEqual((self.folder / "kept/new/0001/1.stdout").read_text(), "first line\nlime\n")
        self.assertTrue((self.folder / "kept/old/0002/files/codes.bin").is_file())
        self.assertTrue((self.folder / "kept/in/special.safetensors").is_file())
        self.assertEqual(self.compare(arguments=["--keep", "kept"])[0], 2)

    def test_a_program_that_is_not_there(self):
        self.assertEqual(subprocess.run([sys.executable, "-B", ROOT / "scripts" / "compare-builds.py", "nowhere",
                                         "nowhere"], stderr=subprocess.DEVNULL).returncode, 2)


class List(unittest.TestCase):
    def texts(self, text):
        return [case.text for case in compare_builds.read_list(text)]

    def test_choices(self):
        self.assertEqual(self.texts("a{b|c} {|d}"), ["ab ", "ab d", "ac ", "ac d"])
        self.assertEqual(self.texts("for R in x{1|2} y: a $R && b $R"),
                         ["a x1 && b x1", "a x2 && b x2", "a y && b y"])
        self.assertEqual(self.texts("! {a|b}"), ["a", "b"])
        case, = compare_builds.read_list("! a 'b c' && d")
        self.assertEqual((case.commands, case.exits, case.prepares), ([["a", "b c"], ["d"]], "!", False))

    def test_mistakes(self):
        for text in "a $R", "a 'b", "a &&  && b":
            with self.assertRaises(compare_builds.ListError):
                compare_builds.read_list(text)

    def test_every_command_has_its_share(self):
        cases = compare_builds.read_list((ROOT / "scripts" / "compare-builds.txt").read_text())
        self.assertGreater(sum(len(case.commands) for case in cases), 300)
        run = {arguments[0] for case in cases for arguments in case.commands if arguments}
        names = re.findall(r'\bcommand\{"(\w+)"', (ROOT / "apps" / "mx" / "commands.cpp").read_text())
        self.assertGreater(len(names), 20)
        self.assertEqual([name for name in names if name not in run], [])


if __name__ == "__main__":
    unittest.main()
