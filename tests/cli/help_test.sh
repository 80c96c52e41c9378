#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Help is short and complete: a command's fits two screens, every option is described by the command
# or by the topic that the command names, and topics describe what commands complete.
# help_test.sh MX SOURCE
command -v python3 >/dev/null || { echo "skipped: python3 is not here"; exit 77; }
exec python3 - "$1" <<'E'
import re
import subprocess
import sys

mx = sys.argv[1]
wrong = []

def out(*words, columns="100"):
    return subprocess.run([mx, *words], capture_output=True, text=True, check=True,
                          env={"COLUMNS": columns, "MX_CONFIG": ""}).stdout

def entries(text):
    """Label and text of each line of help with an option or a reference."""
    found = {}
    for label, meaning in re.findall(r"^  ((?:-|mx help ).*?)(?:  +|\n {30})(.*(?:\n {30}.*)*)", text, re.M):
        found[label] = " ".join(meaning.split())
    return found

def names(label):
    return re.findall(r"(?:^| )(--?[a-z][-a-z0-9]*)", label)

overview = out("help", columns="80")
lines = overview.splitlines()
if len(lines) > 40 or max(map(len, lines)) > 80:
    wrong.append(f"mx help: {len(lines)} lines of {max(map(len, lines))} columns")
commands = re.findall(r"^  [A-Z ][a-z ]{8} ([a-z]+)  ", out("help"), re.M)
commands += ["study scaling-law", "study speedups"]
assert len(commands) > 20, commands
topics = sorted(set(re.findall(r"'mx help ([a-z]+)'", overview)))
assert len(topics) > 1, topics
wrong += [f"{t}: a topic and a command" for t in topics if t in commands]

described = {}  # topic, name: what it means and for which commands
for topic in topics:
    text = out("help", topic)
    for section in re.split(r"\n\n", text)[2:]:
        heading = section[:section.index("):\n")].replace("\n", " ")
        of = heading[heading.index("(") + 1:].split(", ")
        if of[0].startswith("all commands"):
            but = [of[0][len("all commands but "):], *of[1:]]
            of = [c for c in commands if c not in but]
        for label, meaning in entries(section).items():
            for name in names(label):
                if (topic, name) in described:
                    wrong.append(f"{topic}: {name} twice")
                described[topic, name] = meaning, of

seen = set()
for command in commands:
    text = out("help", *command.split())
    if text.count("\n") > 100:
        wrong.append(f"{command}: {text.count(chr(10))} lines of help")
    own, shared = {}, {}
    for label, meaning in entries(text).items():
        if label.startswith("mx help "):
            for name in names(meaning.replace(",", "")):
                shared[name] = label[len("mx help "):]
        else:
            own.update({name: meaning for name in names(label)})
    completed = dict(line.split("\t") for line in out("--complete", *command.split(), "-").splitlines())
    if set(completed) != set(own) | set(shared):
        wrong.append(f"{command}: {set(completed) ^ (set(own) | set(shared))}")
    for name in set(own) & set(shared):
        wrong.append(f"{command}: {name} is described twice")
    for name, topic in shared.items():
        meaning, of = described.get((topic, name), ("", []))
        if command not in of or meaning != completed.get(name):
            wrong.append(f"{command}: {name} in {topic}: {meaning!r} of {of}")
        seen.add((topic, name, command))
for (topic, name), (_, of) in described.items():
    wrong += [f"{topic}: {name} of {c}, which has none" for c in of if (topic, name, c) not in seen]
for command, least in ("analyze", 75), ("compare", 80):
    if out("help", command).count("\n") > least:
        wrong.append(f"{command}: more than {least} lines")
print("\n".join(wrong))
sys.exit(bool(wrong))
E
