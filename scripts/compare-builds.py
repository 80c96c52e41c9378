#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs many command lines with two builds of mx and compares all outputs: standard output, standard
error, exit codes, and every written file, byte for byte. For changes that must not change outputs.
Exit code 0 if nothing differs; otherwise 1, with the first lines that differ.

The command lines are those of compare-builds.txt, which explains its syntax. Inputs are made once: by
sample_inputs.py, and by OLD if `mx` itself writes them."""

import argparse
import concurrent.futures
import fnmatch
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True
import sample_inputs

HERE = Path(__file__).resolve().parent
SECONDS = 300  # a command that takes longer counts as hanging

# Output that differs between runs: (the command, the output, the pattern replaced
# by #).
VARYING = [
    (r"bench\b", r".*", rb"[0-9][-+.e0-9]*| +|-+"),
]


@dataclass
class Case:
    """Commands that run one after the other in one folder."""
    text: str
    commands: list  # of argument lists, without the program
    exits: str = "0"  # "0": all exit with 0; "!": the last does not; "?": depends on the machine
    prepares: bool = False  # writes inputs of the others; run with OLD alone


class ListError(Exception):
    pass


def expand(text):
    """`a{b|c}d` as abd, acd; several braces as all combinations."""
    match = re.search(r"\{([^{}]*\|[^{}]*)\}", text)
    if not match:
        return [text]
    return [one for choice in match[1].split("|")
            for one in expand(text[:match.start()] + choice + text[match.end():])]


def read_list(text):
    """The cases of a list, in its order."""
    cases = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        loop = re.fullmatch(r"for (\w+) in (.*?): (.*)", line)
        lines = [line]
        if loop:
            words = [word for item in loop[2].split() for word in expand(item)]
            lines = [re.sub(rf"\${loop[1]}\b", lambda _, w=word: w, loop[3]) for word in words]
        for one in (each for text in lines for each in expand(text)):
            mark = re.match(r"[@!?] ", one)
            sign, one = (mark[0][0], one[2:]) if mark else ("0", one)
            try:
                commands = [shlex.split(part) for part in one.split(" && ")]
            except ValueError as problem:
                raise ListError(f"line {number}: {problem}: {one}") from None
            if "$" in one or not all(commands):
                raise ListError(f"line {number}: an empty command or a name without a value: {one}")
            cases.append(Case(one, commands, "0" if sign == "@" else sign, sign == "@"))
    return cases


def run_case(program, case, folder, inputs):
    """Runs the case in a new folder: `files` with what it wrote, and N.stdout, N.stderr, N.exit of
    its Nth command beside it. `inputs` is there as `in`. Returns the exit codes."""
    files = folder / "files"
    files.mkdir(parents=True)
    (files / "in").symlink_to(inputs)
    codes = []
    for number, arguments in enumerate(case.commands, 1):
        with open(folder / f"{number}.stdout", "wb") as out, open(folder / f"{number}.stderr", "wb") as err:
            try:
                code = subprocess.run(["mx", *arguments], executable=program, cwd=files, stdout=out, stderr=err,
                                      stdin=subprocess.DEVNULL, timeout=SECONDS,
                                      env=dict(os.environ, LC_ALL="C")).returncode
            except subprocess.TimeoutExpired:
                code = f"none within {SECONDS} s"
        (folder / f"{number}.exit").write_text(f"{code}\n")
        codes.append(code)
    return codes


def as_expected(case, codes):
    if case.exits == "?":
        return True
    return not any(codes[:-1]) and (codes[-1] == 0) == (case.exits == "0")


def outputs(folder):
    """The files below, by their paths; `in` is a link and none of them."""
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink()}


def settle(data, case, name, version):
    """`data` without what cannot be the same twice: times, and the version where the two differ."""
    number = re.match(r"(\d+)\.std", name)
    texts = [shlex.join(case.commands[int(number[1]) - 1])] if number else map(shlex.join, case.commands)
    for text in texts:
        for command, output, pattern in VARYING:
            if re.match(command, text) and re.fullmatch(output, name):
                data = re.sub(pattern, b"#", data)
    return data.replace(version, b"VERSION") if version else data


def first_difference(old, new):
    """Words on where two byte strings part."""
    if b"\0" in old + new:
        at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
        return [f"byte {at} of {len(old)} and {len(new)}",
                f"- {old[at:at + 16].hex(' ')}", f"+ {new[at:at + 16].hex(' ')}"]
    a, b = old.decode(errors="replace").split("\n"), new.decode(errors="replace").split("\n")
    line = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    x, y = (lines[line] if line < len(lines) else "(no such line)" for lines in (a, b))
    column = next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
    start = max(0, column - 60)
    return [f"line {line + 1}, column {column + 1}",
            f"- {'...' * (start > 0)}{x[start:start + 160]}", f"+ {'...' * (start > 0)}{y[start:start + 160]}"]


def compare_case(case, old, new, versions):
    """The differences between two folders of run_case: lists of lines, one per output."""
    found = []
    a, b = outputs(old), outputs(new)
    for name in sorted(a.keys() | b.keys()):
        if name not in a or name not in b:
            found.append([f"{name}: only {'OLD' if name in a else 'NEW'} writes it"])
            continue
        x, y = (settle(side[name].read_bytes(), case, name, version)
                for side, version in ((a, versions[0]), (b, versions[1])))
        if x != y:
            where, *lines = first_difference(x, y)
            found.append([f"{name}: {where}", *lines])
    return found, len(a.keys() | b.keys())


def digest(folder):
    """One hash over the names and bytes of all files below."""
    total = hashlib.sha256()
    for name, path in outputs(folder).items():
        total.update(f"{name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return total.digest()


def version_of(program):
    words = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           stdin=subprocess.DEVNULL, timeout=SECONDS).stdout.split()
    return words[-1] if words else b""


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", metavar="OLD", help="the program that is right")
    parser.add_argument("new", metavar="NEW", help="the program to compare with it")
    parser.add_argument("--only", metavar="GLOB", default="*", help="command lines that match, e.g. '*nvfp4*'")
    parser.add_argument("--keep", metavar="FOLDER", help="leave inputs and outputs there: in, old/N, new/N")
    parser.add_argument("--list", metavar="FILE", default=HERE / "compare-builds.txt", help="other command lines")
    parser.add_argument("--show", metavar="N", type=int, default=20, help="command lines with differences shown (20)")
    parser.add_argument("-j", "--jobs", metavar="N", type=int, default=2, help="processes at a time (2)")
    options = parser.parse_args(arguments)

    programs = [os.path.abspath(options.old), os.path.abspath(options.new)]
    for program in programs:
        if not os.access(program, os.X_OK) or os.path.isdir(program):
            parser.error(f"no program {program}; build it first")
    try:
        cases = read_list(Path(options.list).read_text())
    except (OSError, ListError) as problem:
        parser.error(f"{options.list}: {problem}")
    chosen = [c for c in cases if not c.prepares and fnmatch.fnmatchcase(c.text, options.only)]
    if not chosen:
        parser.error(f"no command line matches {options.only}")
    if options.keep and os.path.exists(options.keep):
        parser.error(f"{options.keep} is there already; choose another folder")

    work = Path(os.path.abspath(options.keep) if options.keep else tempfile.mkdtemp(prefix="compare-builds-"))
    try:
        return compare(programs, [c for c in cases if c.prepares], chosen, work, options)
    finally:
        if not options.keep:
            shutil.rmtree(work, ignore_errors=True)


def compare(programs, preparations, cases, work, options):
    inputs = work / "in"
    inputs.mkdir(parents=True)
    sample_inputs.write_inputs(inputs, HERE.parent / "tests" / "io" / "data")
    for folder in ("vectors", "scaling-laws"):
        (inputs / folder).symlink_to(HERE.parent / "datasets" / folder)
    for number, case in enumerate(preparations, 1):
        codes = run_case(programs[0], case, work / "preparation" / str(number), inputs)
        if any(codes):
            errors = (work / "preparation" / str(number) / f"{len(codes)}.stderr").read_text()
            print(f"{case.text}\n  exit codes {codes} under OLD: {errors}", file=sys.stderr)
            return 1
    versions = [version_of(program) for program in programs]
    if versions[0] == versions[1]:
        versions = [b"", b""]
    before = digest(inputs)

    def one(numbered):
        number, case = numbered
        old, new = (work / side / f"{number:04}" for side in ("old", "new"))
        codes = run_case(programs[0], case, old, inputs)
        run_case(programs[1], case, new, inputs)
        found, files = compare_case(case, old, new, versions)
        if not as_expected(case, codes):
            found.append([f"exit codes {codes} under OLD: the list says otherwise"])
        if not options.keep:
            shutil.rmtree(old)
            shutil.rmtree(new)
        return case, found, files, codes

    runs = files = failing = 0
    different = []
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, options.jobs)) as pool:
        for case, found, some, codes in pool.map(one, enumerate(cases, 1)):
            runs += len(case.commands)
            failing += sum(code != 0 for code in codes)
            files += some - 3 * len(case.commands)
            if not found:
                continue
            different.append(case)
            if len(different) <= options.show:
                print(f"mx {' && mx '.join(case.text.split(' && '))}")
                for lines in found[:5]:
                    print("  " + "\n    ".join(lines), flush=True)
                if len(found) > 5:
                    print(f"  and {len(found) - 5} more outputs")
    if len(different) > options.show:
        print(f"and {len(different) - options.show} more (--show)")
    changed = digest(inputs) != before
    if changed:
        print("the inputs were changed by the commands")
    print(f"{runs} command lines ({runs - failing} exit with 0 under OLD, {failing} do not) and {files} files "
          f"compared: {f'{len(different)} of {len(cases)} cases differ' if different else 'no difference'}")
    return 1 if different or changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
