#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every command that commands print, as it is printed, and compares what it measures with what
the command measured that printed it: the same files under the same names, the same tensors with the
same axes and values.

    printed_commands.py MX SOURCE            the commands of transcripts and pages, and of made-up models
    printed_commands.py MX SOURCE NAME...    only those of these names ("made" for the models)

The transcripts are replayed with a program in place of mx that notes its arguments."""

import html
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile

MX, SOURCE = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
ONLY = set(sys.argv[3:])
HERE = os.path.join(SOURCE, "tests", "cli")
DATA = os.path.join(SOURCE, "tests", "io", "data")

# Figures of a tensor that do not depend on a recipe, only on which values it has in which order of
# axes.
VALUES = ("dtype", "shape", "role", "elements", "nan", "inf", "rms", "crest_factor")
MEASURING = ("analyze", "compare", "cluster")
OUTPUTS = ("json", "csv", "markdown", "html", "blocks", "title", "color", "summary", "sha256", "quiet",
           "shard", "page-sums", "parts", "q", "verbose", "all", "worst", "exact")
FLAGS = ("summary", "sha256", "quiet", "page-sums", "q", "verbose", "all", "exact")

failures = []
count = 0


def fail(what, *details):
    failures.append(what)
    print("FAIL", what)
    for d in details:
        print("    " + str(d).strip().replace("\n", "\n    "))


def environment(folder):
    env = {k: v for k, v in os.environ.items()
           if k not in ("COLUMNS", "NO_COLOR", "CLICOLOR_FORCE") and not k.startswith("MX_")}
    env.update(PATH=os.path.join(folder, "bin") + os.pathsep + env["PATH"], LC_ALL="C", MX_CONFIG="",
               PYTHONUTF8="1")
    return env


def make_folder(folder, noting):
    """bin/mx, which notes its arguments in `notes` if wanted, and files/."""
    os.makedirs(os.path.join(folder, "bin"))
    os.makedirs(os.path.join(folder, "files"))
    mx = os.path.join(folder, "bin", "mx")
    if not noting:
        os.symlink(MX, mx)
        return
    with open(mx, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n{ pwd; printf '%s\\0' \"$@\"; printf '\\0\\n'; } >>" +
                shlex.quote(os.path.join(folder, "notes")) + "\nexec " + shlex.quote(MX) + ' "$@"\n')
    os.chmod(mx, 0o755)


def run(command, folder, **how):
    """A command line of sh, or a list of words."""
    shell = isinstance(command, str)
    return subprocess.run(["sh", "-c", command] if shell else command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          cwd=how.pop("cwd", os.path.join(folder, "files")),
                          env=environment(folder), check=False, **how)


def printed_in(text):
    """The commands in an output: lines that begin with "$ mx", the blocks of Markdown, the code
    of HTML, what ends errors, and those of JSON."""
    found = []
    lines = iter(text.split("\n"))
    for line in lines:
        at = re.match(r"\$ (mx .*)$", line) or re.search(r"measure it with: (mx .*)$", line)
        if at:
            command = at[1]
            while command.endswith("\\"):
                command = command[:-1] + next(lines)
            found.append(command)
        if line == "```sh":
            found.append(next(lines))
        for part in re.findall(r"<code>(mx .*?)</code>", line):
            found.append(html.unescape(part))
        for part in re.findall(r'"command": ?("mx (?:[^"\\]|\\.)*")', line):
            found.append(json.loads(part))
    return list(dict.fromkeys(found))


def without_outputs(words):
    """The words of a command without those for outputs."""
    kept, skip = [], False
    for word in words:
        name = re.match(r"--?([a-z0-9-]+)", word)
        if skip:
            skip = False
        elif word.startswith("-") and name and name[1] in OUTPUTS:
            skip = "=" not in word and name[1] not in FLAGS
        else:
            kept.append(word)
    return kept


def read_json(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        return json.load(f)


def document_of(words, folder, cwd):
    """The JSON of a measuring command."""
    path = os.path.join(folder, "document.json")
    command, *rest = without_outputs(words)
    ran = run([MX, command, "--json", path, "-q", *rest], folder, cwd=cwd)
    return read_json(path) if ran.returncode == 0 else None


def plain(path):
    """"./-x" and "-x" are one file."""
    return os.path.normpath(path or "")


def tensors_of(document):
    """The tensors with their values, and the names of all, also of those that no recipe fits."""
    def place(record):
        return plain(record.get("file")), record.get("tensor")

    values = {place(r): {k: r.get(k) for k in VALUES} for r in document.get("results", [])}
    return values, set(values) | {place(s) for s in document.get("skipped", []) if s["recipe"]}


def inputs_of(document):
    return [{k: plain(v) if k in ("path", "given") else v for k, v in i.items() if k != "sha256"}
            for i in document["inputs"]]


def check(command, documents, folder, cwd, of):
    """`documents`: of the commands that printed it, or that made the results it was printed about."""
    global count
    count += 1
    path = os.path.join(folder, "printed.json")
    if os.path.exists(path):
        os.remove(path)
    words = command.split()
    measures = words[1] in MEASURING or words[1] == "show"
    more = f" --json {shlex.quote(path)} -q" if measures else ""
    before, separator, last = command.partition(" -- ")
    line = before + more + separator + last
    ran = run(line, folder, cwd=cwd)
    if ran.returncode != 0:
        return fail(f"{of}: {command}", f"exit {ran.returncode}", ran.stderr.decode(errors="replace"))
    if not measures:
        return None
    found = read_json(path)
    if words[1] == "show":
        for t in found["tensors"]:
            mine = {k: t[k] for k in ("dtype", "shape", "role", "elements") if k in t}
            if not any(key[1] == t["tensor"] and mine.items() <= values.items()
                       for d in documents for key, values in tensors_of(d)[0].items()):
                fail(f"{of}: {command}", "shows another tensor", mine)
        return None
    mine, names = tensors_of(found)
    for d in documents:
        theirs, all_names = tensors_of(d)
        # Single tensors are named where others are measured already.
        if (mine.items() <= theirs.items() and inputs_of(found) == inputs_of(d)
                and (names == all_names or " -t " in command or " --tensor=" in command)):
            return None
    return fail(f"{of}: {command}", "measures something else",
                *(f"wanted {tensors_of(d)[0]} of {inputs_of(d)}" for d in documents),
                f"found {mine} of {inputs_of(found)}")


def documents_of(words, folder, cwd):
    """What the printed commands of a command are about."""
    if words[:1] and words[0] in MEASURING:
        return list(filter(None, [document_of(words, folder, cwd)]))
    if words[:1] == ["show"]:  # of the whole file
        return list(filter(None, [document_of(["analyze", *words[1:]], folder, cwd)]))
    found = []
    for word in words[1:]:
        path = os.path.join(cwd, word)
        try:
            d = read_json(path)
        except (OSError, ValueError):
            continue
        if d.get("schema") == "mx.analysis/1":
            found.append(d)
    return found


def notes_in(folder):
    path = os.path.join(folder, "notes")
    if not os.path.exists(path):
        return []
    with open(path, "rb") as f:
        data = f.read()
    os.remove(path)
    found = []
    for note in data.split(b"\0\0\n"):
        if note:
            cwd, _, words = note.partition(b"\n")
            found.append((os.fsdecode(cwd), [os.fsdecode(w) for w in words.split(b"\0")]))
    return found


def commands_of(path):
    """The lines "$ COMMAND" of a transcript, or of the blocks marked "console" of a page, by number;
    none if nothing that they print is a command."""
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    page, inside, found, prints = path.endswith(".md"), False, [], False
    for number, line in enumerate(lines, 1):
        if page and line.startswith("```"):
            inside = line == "```console"
        elif line.startswith("$ ") and (inside or not page):
            found.append((number, line[2:]))
            # A page's blocks hold outputs unmarked, so that a printed command looks like one to run.
            prints = prints or page
        elif re.match(r"[|!] .*(\$ mx |measure it with: mx |\"command\": ?\"mx )", line):
            prints = True
    return found if prints else []


def transcript(path):
    name = os.path.basename(path)
    commands_run = commands_of(path)
    if not commands_run:
        return
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder, True)
        run(f"here={shlex.quote(HERE)}; . {shlex.quote(HERE)}/fixtures.sh", folder)
        for number, line in commands_run:
            ran = run(line, folder)
            notes = notes_in(folder)
            text = (ran.stdout + ran.stderr).decode(errors="replace")
            commands = [c for c in printed_in(text) if not c.startswith("mx study")]
            if not commands:
                continue
            documents = [d for cwd, words in notes for d in documents_of(words, folder, cwd)]
            for command in commands:
                check(command, documents, folder, notes[0][0] if notes else
                      os.path.join(folder, "files"), f"{name}:{number}")


# --- models made here ----------------------------------------------------------------------------

def numbers(n, start=1):
    """Float32 of a fixed pseudo-random sequence, of no symmetry."""
    out, x = [], start
    for _ in range(n):
        x = (x * 1103515245 + 12345) % 2**31
        out.append(x / 2**30 - 1)
    return struct.pack("<%df" % n, *out)


def safetensors(path, tensors, metadata=None):
    """Name to (dtype, shape, bytes); without dtype float32 of numbers()."""
    head, blob = {}, b""
    for at, (name, t) in enumerate(tensors.items()):
        if isinstance(t[0], int):
            n = 1
            for extent in t:
                n *= extent
            t = ("F32", t, numbers(n, at + 1))
        head[name] = {"dtype": t[0], "shape": list(t[1]), "data_offsets": [len(blob), len(blob) + len(t[2])]}
        blob += t[2]
    if metadata:
        head["__metadata__"] = metadata
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)


def index(folder, files):
    """A model with an index: file to its tensors."""
    os.makedirs(folder)
    for name, tensors in files.items():
        safetensors(os.path.join(folder, name), tensors)
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
        json.dump({"weight_map": {t: name for name, tensors in files.items() for t in tensors}}, f)


def make_models(folder):
    os.chdir(folder)
    up, down, norm = "l.0.up_proj.weight", "l.0.down_proj.weight", "l.0.norm.weight"
    safetensors("plain.safetensors", {up: (64, 96), down: (32, 64), norm: (64,)})
    safetensors("fused.safetensors", {"l.0.qkv.weight": (96, 64), "l.0.out.weight": (64, 96)})
    safetensors("stack.safetensors", {"l.0.experts.weight": (3, 64, 96), up: (64, 96)})
    safetensors("tokens.safetensors", {"cache_k": (8, 256), up: (64, 96)})
    safetensors("moe.safetensors", {f"l.0.experts.{e}.up.weight": (64, 96) for e in range(3)})
    safetensors("counts.safetensors", {up: (64, 96), "table": ("I32", (32, 64), bytes(8192))})
    safetensors("vectors.safetensors", {up: (64, 96), "ln": (1, 64, 1)})
    # No NaN among the codes.
    codes = bytes(b & 0x7e for b in numbers(8192))
    safetensors("swizzled.safetensors",
                {"x.weight": ("F8_E4M3", (128, 256), codes),
                 "x.weight_scale": ("F8_E8M0", (128, 8), bytes(100 + i % 40 for i in range(1024)))})
    safetensors("it's a model.safetensors", {"it's [a] *.weight": (64, 96), "-b.weight": (64, 96),
                                             "é \u2028 c\n.weight": (64, 96)})
    safetensors("-dash.safetensors", {up: (64, 96)})
    safetensors("two\nlines.safetensors", {up: (64, 96)})
    safetensors("100% \\ $HOME `x`.safetensors", {up: (64, 96)})
    safetensors(b"latin-\xe9 it's.safetensors", {up: (64, 96)})
    safetensors("ends\n", {up: (64, 96)})
    with open("raw.bin", "wb") as f:
        f.write(bytes(16) + numbers(4096))
    with open("half.bin", "wb") as f:
        f.write(b"".join(numbers(4096)[i + 2:i + 4] for i in range(0, 16384, 4)))
    shards = {f"model-{i:05}-of-00003.safetensors": {f"l.{i}.up_proj.weight": (64, 96)} for i in (1, 2, 3)}
    index("sharded model", shards)
    os.makedirs("loose/deep")
    for name, tensors in shards.items():
        safetensors("loose/" + name, tensors)
        safetensors("loose/deep/" + name, tensors)
    os.symlink(os.path.join(DATA, "onnx_external.onnx"), "external.onnx")
    os.symlink(os.path.join(DATA, "onnx_external.data"), "onnx_external.data")
    os.symlink(os.path.join(DATA, "torch_distributed"), "dcp")


# Each prints commands: one recipe of those that the policy judges was measured.
MADE = [
    ["plain.safetensors", "-t", "*_proj*"],
    ["plain.safetensors", "-t", "*up*", "-t", "*down*", "--target", "b200"],
    ["plain.safetensors", "--transpose", "*up*", "--policy", "inference"],
    ["plain.safetensors", "--role", "weight"],
    ["plain.safetensors", "--role-pattern", "activation=*up*"],
    ["plain.safetensors", "--norm-bias", "1"],
    ["plain.safetensors", "fused.safetensors", "--transpose", "l.0.up*", "--split", "*qkv*=q:32,kv:64"],
    ["fused.safetensors", "--split", "l.0.qkv.weight=q:64,k:16,v:16"],
    ["fused.safetensors", "--split", "l.0.qkv.weight@1=a:32,b:32", "--transpose", "*.a"],
    ["stack.safetensors", "--experts", "*experts*"],
    ["stack.safetensors", "--experts", "*experts*", "--transpose", "*.experts.*"],
    ["tokens.safetensors", "--heads", "cache_*=4"],
    ["moe.safetensors", "--group", "experts.*"],
    ["counts.safetensors", "--integers"],
    ["swizzled.safetensors"],
    ["swizzled.safetensors", "--swizzled"],
    ["swizzled.safetensors", "--raw"],
    ["swizzled.safetensors", "--as", "f8_e4m3", "--raw"],
    ["it's a model.safetensors"],
    ["it's a model.safetensors", "-t", "it's \\[a] \\*.weight"],
    ["it's a model.safetensors", "--transpose=-b.weight", "--tensor=-b*"],
    ["./-dash.safetensors"],
    ["two\nlines.safetensors"],
    ["100% \\ $HOME `x`.safetensors"],
    [os.fsdecode(b"latin-\xe9 it's.safetensors")],
    ["ends\n"],
    ["raw.bin", "--shape", "32x128", "--dtype", "F32", "--byte-offset", "16"],
    ["half.bin", "--shape", "32x128", "--dtype", "BF16", "--transpose", "half"],
    ["sharded model"],
    ["sharded model/"],
    ["sharded model/model.safetensors.index.json", "-t", "l.[12].*"],
    ["loose"],
    ["loose/*.safetensors"],
    ["loose/deep", "plain.safetensors"],
    ["external.onnx", "--integers"],
    ["dcp"],
    ["dcp/.metadata"],
    ["vectors.safetensors"],
]


COMMANDS = ["analyze", "cluster"]
BOTH = [["plain.safetensors", "--transpose", "*up*", "--policy", "inference"], ["sharded model"],
        ["vectors.safetensors"]]


def made():
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder, False)
        files = os.path.join(folder, "files")
        make_models(files)
        for words in MADE:
            for command in COMMANDS if words in BOTH else COMMANDS[:1]:
                line = [command, *words, "-r", "mxfp4"]
                of = shlex.join(line)
                ran = run([MX, *line, "--json", "results.json", "--markdown", "page.md",
                           "--html", "page.html"], folder)
                if ran.returncode != 0:
                    fail(of, ran.stderr.decode(errors="replace"))
                    continue
                document = read_json(os.path.join(files, "results.json"))
                report = run([MX, "report", "results.json", "--json", "report.json", "--markdown",
                              "report.md"], folder)
                plan = run([MX, "plan", "results.json"], folder)
                text = b"\n".join([ran.stdout, report.stdout, plan.stdout, plan.stderr])
                for name in ("page.md", "page.html", "report.md", "report.json"):
                    with open(os.path.join(files, name), "rb") as f:
                        text += b"\n" + f.read()
                commands = printed_in(text.decode(errors="surrogateescape"))
                if command == "analyze" and not commands:
                    fail(of, "prints no command")
                for printed in commands:
                    check(printed, [document], folder, files, of)


def main():
    if not ONLY or "made" in ONLY:
        made()
    tutorials = os.path.join(SOURCE, "docs", "tutorials")
    pages = [os.path.join(SOURCE, "README.md"), os.path.join(SOURCE, "docs", "guide", "quantized.md")]
    for folder in (HERE, tutorials):
        pages += sorted(os.path.join(folder, name) for name in os.listdir(folder))
    for path in pages:
        stem, kind = os.path.splitext(os.path.basename(path))
        if kind in (".transcript", ".md") and (not ONLY or stem in ONLY):
            transcript(path)
    print(f"{count} printed commands, {len(failures)} failures")
    sys.exit(1 if failures or count == 0 else 0)


main()
