#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One name, one meaning: an option of several commands takes the same kind of value in all of them,
# and a letter is short for one option. options_test.sh MX SOURCE
command -v python3 >/dev/null || { echo "skipped: python3 is not here"; exit 77; }
exec python3 - "$1" <<'E'
import collections
import re
import subprocess
import sys

# Words for one kind of value.
SAME = {"OUT": "FILE", "FOLDER": "FILE", "PLAN.json": "FILE", "FILE:TENSOR": "FILE", "FORMAT": "F",
        "F,...": "F", "RxC,...": "RxC", "N,...": "N", "ROUNDING": "NAME", "DIALECT": "NAME", "NAME,...": "NAME", "VALUE": "MODEL"}
# Options whose value must differ, with the reason.
DIFFERENT = {
    "--rules": "a file of rules about results, or names of the rules of mx lint",
    "--size": "bytes of data that are made, or the name of a language model",
    "--heads": "how a tensor is laid out, or of the model that is trained",
    "--eval": "the scores of a task, or the model whose evaluation is timed",
    "--at": "settings of some layers, or from a step of a training on",
    "--attention": "a recipe for the operands of attention, or the share of a step's time",
    "--dump": "activations of a model by name, or steps of a training",
    "--by": "the measure of a plan, or the column that separates groups",
    "--fail-above": "mx cluster has one figure to fail on, mx diff many",
}

mx = sys.argv[1]
def out(*words):
    return subprocess.run([mx, *words], capture_output=True, text=True, check=True,
                          env={"COLUMNS": "100", "MX_CONFIG": ""}).stdout

commands = [m.group(1) for m in re.finditer(r"^  [A-Z ][a-z ]{8} ([a-z]+)  ", out("help"), re.M)]
assert len(commands) > 20, commands
commands += ["study scaling-law", "study speedups"]
commands += re.findall(r"'mx help ([a-z]+)'", out("help"))  # topics
values, letters = collections.defaultdict(dict), collections.defaultdict(dict)
for command in commands:
    for line in out("help", *command.split()).splitlines():
        m = re.match(r"  (-\S.*?)(?:  .*)?$", line)
        if not m:
            continue
        words = m.group(1).replace(",", " ").split() if ", " in m.group(1) else m.group(1).split()
        names = [w for w in words if w.startswith("-")]
        rest = [w for w in m.group(1).split() if not w.startswith("-")]
        value = SAME.get(rest[0], rest[0]) if rest else ""
        for name in names:
            if name.startswith("--"):
                values[name].setdefault(value, []).append(command)
            else:
                letters[name].setdefault(names[-1], []).append(command)
assert len(values) > 150, len(values)
wrong = [f"{name}: {dict(kinds)}" for name, kinds in values.items()
         if len(kinds) > 1 and name not in DIFFERENT]
wrong += [f"{letter}: {dict(of)}" for letter, of in letters.items() if len(of) > 1]
print("\n".join(wrong))
sys.exit(bool(wrong))
E
