#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what mx writes against its schemas, and the schemas against what they should
refuse: every member renamed, every number in quotes. validate.py SOURCE MX [MX_CAPTURE]"""

import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

warnings.simplefilter("ignore", DeprecationWarning)
try:
    from jsonschema import Draft202012Validator
except ImportError as e:
    print(f"skipped: no jsonschema for {sys.executable}: {e}")
    sys.exit(77)

SOURCE = Path(sys.argv[1]).resolve()
MX = str(Path(sys.argv[2]).resolve())
CAPTURE = str(Path(sys.argv[3]).resolve()) if len(sys.argv) > 3 else ""
FOLDER = SOURCE / "docs" / "reference" / "schemas"
VECTORS = SOURCE / "datasets" / "vectors"
MODELS = VECTORS / "eval"
LAWS = SOURCE / "datasets" / "scaling-laws"

# Names of this form that are of files in other formats, or inside of one.
NO_DOCUMENTS = {"blocks", "cast", "checkpoint", "dump", "packed", "probes"}
# Objects with members named by the user, a file or another tool: every name is allowed.
OPEN = [r"mx\.(run|study)/1 request", r"mx\.run/1 steps\.probe\.(gradients|blocks|gains)",
        r"mx\.(plan|placement)/1 mapping\..*\.(arguments|weights|fqn_to_config|config_groups|"
        r"block_sizes|cfg|tensor_types)",
        r"mx\.scores/1 results"]

SMALL = "--elements 4096 --seconds 0.02 --threads 1"
TINY = "--width 32 --depth 1 --batch 8 --steps 6 --seeds 1..2 --quiet"
NETWORK = "train proxy --width 32 --depth 1 --batch 16 --quiet"
LANGUAGE = "train olmo --width 32 --depth 1 --context 16 --batch 32 --quiet"
# Command lines, the schema of their JSON, and their exit code unless it is 0. {json} is the output
# file.
COMMANDS = [
    ("synth -o tiny.safetensors --quiet", None),
    ("synth -o 10.safetensors --preset layernorm --seed 1 --quiet", None),
    ("synth -o 20.safetensors --preset layernorm --seed 2 --quiet", None),
    ("synth -o 30.safetensors --preset layernorm --seed 3 --quiet", None),
    ("synth -o linear.safetensors --preset linear --quiet", None),
    ("quantize tiny.safetensors -t *q_proj.weight -r mxfp4 --packed -o packed.safetensors --quiet",
     None),
    ("vectors -r mxfp4 -r nvfp4 -o vectors --quiet", None),
    ("synth --list --json {json}", "presets"),
    ("version --json {json}", "version"),
    ("explain formats --json {json}", "formats"),
    ("explain rules --json {json}", "rules"),
    ("explain metrics --json {json}", "metrics"),
    ("explain dialects --json {json}", "dialects"),
    ("explain dialects ggml --json {json}", "dialect"),
    ("explain dialects torchao fbgemm --json {json}", "dialect_differences"),
    ("explain accumulators --json {json}", "accumulators"),
    ("explain accumulators cdna3.fp8 --json {json}", "accumulator"),
    ("explain mxfp4:offset=fp16,round=stochastic --json {json}", "recipe"),
    ("explain nvfp4:transform=hadamard --json {json}", "recipe"),
    ("explain e4m3 --json {json}", "codes"),
    ("explain int4 8 --json {json}", "codes"),
    ("explain e8m0 0 255 --json {json}", "codes"),
    ("explain policy --json {json}", "policy"),
    ("explain policy training --target b200 --json {json}", "policy"),
    ("verify --json {json} --quiet", "build-check"),
    ("verify --power --a linear.safetensors:*input --b linear.safetensors:*weight --transpose-b -r mxfp4 "
     "--class any-order-f32 --json {json} --quiet", "product-power"),
    ("tensors tiny.safetensors --json {json}", "tensors"),
    ("tensors packed.safetensors --json {json}", "tensors"),
    ("show tiny.safetensors -r nvfp4 --worst 2 --json {json} --html s.html --quiet", "show"),
    ("show tiny.safetensors model.norm.weight -r mxint4:offset=fp16 --block-index 1 --json {json}", "show"),
    ("analyze tiny.safetensors --json {json} --html a.html --quiet", "analysis"),
    ("analyze tiny.safetensors -r mxfp4 -r nvfp4:dialect=torchao -r mxfp8:axis=1 --histograms "
     "--decompose --sha256 --json {json} --quiet", "analysis"),
    ("analyze tiny.safetensors -r mxfp4 -r nvfp4 --group layers.* --group role --json {json} --quiet",
     "analysis"),
    ("compare tiny.safetensors --element e2m1 --scale floor,even --block 1x32 --layers --json {json} "
     "--quiet", "analysis"),
    ("compare tiny.safetensors -r mxfp4 -r mxfp4:round=stochastic --draws 3 --json {json} --quiet",
     "analysis"),
    ("compare tiny.safetensors -t *norm* --element e2m1 --scale floor,even --phase-sweep "
     "--json {json} --quiet", "analysis"),
    ("cluster 10.safetensors -r mxfp8 -r mxfp4:offset=fp16 --json {json} --quiet", "analysis"),
    ("cluster 10.safetensors -r mxfp8 --group layers.* --group role --json {json} --quiet", "analysis"),
    ("diff 10.safetensors 20.safetensors 30.safetensors --json {json} --quiet", "diff"),
    ("diff 10.safetensors tiny.safetensors -t *norm* --json {json} --quiet", "diff"),
    ("diff analyze.json analyze.json --json {json} --quiet", "changes"),
    ("watch -r mxfp8 -r mxfp4 --log watch.jsonl --quiet -- 10.safetensors 20.safetensors "
     "30.safetensors", None, 1),
    ("tensors tiny.safetensors --parts 3 --json {json}", "shards"),
    ("analyze tiny.safetensors -r nvfp4 --shard 2/7 --json {json} --quiet", "analysis"),
    ("diff 10.safetensors 20.safetensors -r mxfp4 -r nvfp4 --group layers.* --group role --json {json} "
     "--quiet", "diff"),
    ("diff 10.safetensors 20.safetensors --shard 1/2 --json {json} --quiet", "diff"),
    ("gemm linear.safetensors:*input linear.safetensors:*weight --transpose-b -r mxfp4 --growth "
     "-o d.npy --json {json} --quiet", "gemm"),
    ("gemm linear.safetensors:*input linear.safetensors:*weight --transpose-b -r mxfp4 --identify d.npy "
     "--json {json} --quiet", "gemm-identity"),
    ("verify d.npy --a linear.safetensors:*input --b linear.safetensors:*weight --transpose-b -r mxfp8 "
     "--class any-order-f32 --json {json} --quiet", "product-check", 1),
    ("layer --x linear.safetensors:*input --w linear.safetensors:*weight "
     "--dy linear.safetensors:*output --json {json} --quiet", "layer"),
    ("layer --x linear.safetensors:*input --w linear.safetensors:*weight -r bf16 --json {json} "
     "--quiet", "layer"),
    ("layer linear.safetensors -r mxfp4 --json {json} --quiet", "layer"),
    (f"{NETWORK} --steps 4 --seeds 1,2 -o plain --json {{json}}", "train"),
    (f"{NETWORK} --steps 4 --probe-every 2 -r mxfp4:round=stochastic -o drawn --json {{json}}",
     "train"),
    (f"study correlation {TINY} --json {{json}} --html study.html", "study"),
    (f"study stages {TINY} --json {{json}}", "study"),
    (f"study hybrid --on llama --context 8 {TINY} --json {{json}}", "study"),
    (f"{LANGUAGE} --steps 2 --probe-every 1 -r mxfp8 -o words --json {{json}}", "train"),
    (f"{LANGUAGE} --seeds 1,2 --dry-run --json {{json}}", "training_cost"),
    ("runs plain drawn --json {json} --quiet", "runs"),
    ("study speedups --json {json} --html p.html --quiet", "project"),
    ("study speedups --model llama3-8b --profile b200 -c mxfp8:products=fprop --json {json}", "project"),
    ("report analyze.json --json {json} -o r.html --quiet", "report"),
    ("report analyze.json --policy inference --json {json} -o r.html --quiet", "report"),
    ("plan analyze.json --json {json}", "plan"),
    ("plan analyze.json --bits 6 --json {json}", "plan"),
    ("plan analyze.json --bits 16 -r mxfp8:scale=rceil --json {json}", "plan"),
    ("plan analyze.json --bits 6 --group layer,role --json {json}", "plan"),
    ("plan analyze.json --sqnr 20 -t *.weight --json {json}", "plan"),
    ("gate analyze.json --rule sqnr_db>40 --rule norm:rmse<1 --rule summary:nrmse<1 "
     "--json {json} --quiet", "gate", 1),
    ("gate analyze.json --rule policy --json {json} --quiet", "gate"),
    (f"eval {MODELS}/llama --sample 60 --context 30 -r mxfp4 --weights mxfp8 --each kind --by both --pairs 2 "
     "--layers --per-token --json {json} --quiet", "eval"),
    ("plan eval.json --by divergence --bits 9 --keep -r mxfp8 --json {json} --quiet", "placement"),
    ("plan eval.json --by divergence --bits 5 --json {json} --quiet", "placement"),
    ("lint tiny.safetensors --json {json} --quiet", "lint"),
    ("rosetta tiny.safetensors -t *norm* --json {json}", "rosetta"),
    ("rosetta packed.safetensors --original tiny.safetensors --json {json}", "origins"),
    ("verify vectors --json {json} --quiet", "verify"),
    ("verify vectors/mxfp4.safetensors -r mxfp4:scale=rceil --json {json} --quiet", "verify", 1),
    (f"verify {VECTORS}/mma/sm100.f16.bf16.bf16.f32.chain.safetensors --accumulate sm80.f16 "
     "--json {json} --quiet", "verify", 1),
    (f"bench {SMALL} -r mxfp4 -r mxfp8 --together --json {{json}} --quiet", "bench"),
    (f"bench tiny.safetensors {SMALL} -r mxfp4 --json {{json}} --quiet", "bench"),
    ("bench --gemm --mnk 32,32,64 --seconds 0.02 --threads 1 -m sm100.mxf4 --json {json} --quiet",
     "bench"),
    (f"bench --eval {MODELS}/llama --seconds 0.02 --threads 1 --json {{json}} --quiet", "bench"),
    (f"bench --suite --case mxfp4 {SMALL} --json {{json}} --quiet", "bench"),
]
# For builds with NLopt.
FITS = [
    (f"study scaling-law {LAWS}/su2025-e4m3-bf16.csv --bootstrap 20 --max-rise 0.02 --predict 1e9,2e10 --json {{json}} "
     "--html f.html --quiet", "fit"),
    ("study scaling-law bits.csv --form precision --bootstrap 0 --json {json} --quiet", "fit"),
    (f"study speedups --solve {LAWS}/yang-speedups.csv --json {{json}} --quiet", "project"),
]
# Documents that commands write without --json.
FILES = [("watch.jsonl", "watch"), ("plain/seed-1/run.json", "run"), ("drawn/run.json", "run"), ("words/run.json", "run")]
READ = [(SOURCE / "libmx" / "policy" / "training.json", "policy"),
        (SOURCE / "libmx" / "policy" / "inference.json", "policy")]
SCORES = {"schema": "mx.scores/1", "results": [
    {"recipe": "stored", "metric": "perplexity", "value": 5.5, "better": "lower"},
    {"recipe": "mxfp4", "metric": "perplexity", "value": 5.6, "better": "lower"}]}

problems = []


def complain(text):
    problems.append(text)
    print(text)


def load_schemas():
    with tempfile.TemporaryDirectory() as share:
        subprocess.run([MX, "help", "--write-share", share], check=True)
        paths = [*FOLDER.glob("*.json"), *Path(share, "schemas").glob("*.json")]
        schemas = {p.name: json.loads(p.read_text()) for p in sorted(paths, key=lambda p: p.name)}
    if len(schemas) != len(paths):
        complain(f"mx writes schemas that {FOLDER} has too")
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    return schemas


def validators_of(schemas):
    """By name; references between files are answered from memory, by either interface."""
    base = FOLDER.as_uri() + "/"
    try:
        from referencing import Registry, Resource
        registry = Registry().with_resources(
            (base + name, Resource.from_contents(s)) for name, s in schemas.items())
        return {name: Draft202012Validator({"$ref": base + name}, registry=registry)
                for name in schemas}
    except ImportError:
        from jsonschema import RefResolver
        store = {base + name: s for name, s in schemas.items()}
        return {name: Draft202012Validator(s, resolver=RefResolver(base + name, s, store=store))
                for name, s in schemas.items()}


def file_of(schema):
    return schema[len("mx."):].replace("/", "-") + ".json"


def hold(validators, document, source):
    schema = document["schema"]
    validator = validators.get(file_of(schema))
    if validator is None:
        complain(f"{source}: no {file_of(schema)}")
        return
    for error in list(validator.iter_errors(document))[:3]:
        complain(f"{source}: {schema}: {'.'.join(map(str, error.absolute_path))}: {error.message}")


def shortened(value, keep=2):
    """Lists of objects cut to their first elements: enough to try every member once."""
    if isinstance(value, dict):
        return {k: shortened(v) for k, v in value.items()}
    if isinstance(value, list):
        nested = value and all(isinstance(v, dict) for v in value)
        return [shortened(v) for v in (value[:keep] if nested else value)]
    return value


def places(value, path=()):
    """Every member of every object: the path to the object, and its name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield path, name
            yield from places(inner, path + (name,))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from places(inner, path + (i,))


def at(document, path):
    for step in path:
        document = document[step]
    return document


def try_mutations(validators, documents, tried):
    """Renames every member, and puts every number in quotes; all of that has to fail. Returns how
    many documents were tried."""
    count = 0
    for document in documents:
        schema = document["schema"]
        validator = validators[file_of(schema)]
        document = shortened(document)
        for path, name in list(places(document)):
            shape = " ".join([schema, ".".join(str(p) for p in path if not isinstance(p, int))])
            if any(re.fullmatch(o + r"(\..*)?", shape.strip()) for o in OPEN):
                continue
            if not path and name == "schema" or (shape, name) in tried:
                continue
            tried.add((shape, name))
            changes = [("renamed", lambda o: {k + "_" if k == name else k: v for k, v in o.items()})]
            number = at(document, path)[name]
            if isinstance(number, (int, float)) and not isinstance(number, bool):
                changes.append(("in quotes", lambda o: {**o, name: str(o[name])}))
            for words, change in changes:
                changed = copy.deepcopy(document)
                target = at(changed, path)
                new = change(target)
                target.clear()
                target.update(new)
                count += 1
                if validator.is_valid(changed):
                    complain(f"{shape} {name}: valid although {words}")
    return count


def names_in_sources():
    """The forms that the programs name."""
    names = set()
    for folder in ("libmx", "apps"):
        for path in (SOURCE / folder).rglob("*.[ch]pp"):
            names |= set(re.findall(r'"(mx\.[a-z_]+/[0-9]+)"', path.read_text()))
    return {n for n in names if n[len("mx."):].split("/")[0] not in NO_DOCUMENTS}


def write_documents(folder):
    """Runs the commands; the documents that they wrote, by command line or file."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MX_")}
    made = {}
    rows = [f"{n},{d},{w},{post},{1.7 + 400 / (n * w / 9) ** 0.34 + 800 / d ** 0.3 + 0.1 / (post or 99)}"
            for n in (1e7, 1e8, 1e9) for d in (1e9, 1e10, 1e11) for w in (4, 8) for post in ("", 4)
            if w == 8 or not post]
    (folder / "bits.csv").write_text("\n".join(["N,D,P_w,P_post,loss", *rows, "1,1,4,,nan"]))
    version = subprocess.run([MX, "version", "--csv", "-"], capture_output=True, text=True)
    commands = COMMANDS + (FITS if "NLopt" in version.stdout else [])
    for i, (line, kind, *code) in enumerate(commands):
        out = f"{i}.json"
        words = [MX] + [w.format(json=out) for w in line.split()]
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
        if done.returncode != (code[0] if code else 0):
            complain(f"mx {line}: exit code {done.returncode}: {done.stderr.strip()[:300]}")
            continue
        if kind is None:
            continue
        document = json.loads((folder / out).read_text())
        made[f"mx {line}"] = (kind, document)
        command = line.split()[0]
        if command in ("analyze", "eval") and not (folder / f"{command}.json").exists():
            (folder / f"{command}.json").write_text((folder / out).read_text())
    for name, kind in FILES:
        text = (folder / name).read_text()
        # Of a log, the last line.
        made[name] = (kind, json.loads(text.splitlines()[-1] if name.endswith(".jsonl") else text))
    if CAPTURE:
        done = subprocess.run([CAPTURE, "--quick", "--emulate", "sm_90a", "--only", "wgmma.e4m3",
                               "-o", "captured"], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            complain(f"mx_capture: exit code {done.returncode}: {done.stderr.strip()[:300]}")
        else:
            made["mx_capture"] = ("capture", json.loads((folder / "captured" / "manifest.json")
                                                        .read_text()))
    return made


def main():
    schemas = load_schemas()
    validators = validators_of(schemas)
    with tempfile.TemporaryDirectory() as folder:
        made = write_documents(Path(folder))
    for path, kind in READ:
        made[path.name] = (kind, json.loads(path.read_text()))
    made["scores"] = ("scores", SCORES)
    for source, (kind, document) in made.items():
        if not re.fullmatch(rf"mx\.{kind}/[0-9]+", document["schema"]):
            complain(f"{source}: writes {document['schema']}, not mx.{kind}")
        hold(validators, document, source)

    seen = {file_of(document["schema"]) for _, document in made.values()}
    documents = set(schemas) - {"members.json", "common.json"}
    for name in sorted(documents - seen):
        if name == "fit-1.json" and not any("mx study scaling-law" in source for source in made):
            continue  # built without NLopt
        if name != "capture-1.json" or CAPTURE:
            complain(f"{name}: no command here writes it")
    for name in sorted(names_in_sources()):
        if file_of(name) not in schemas:
            complain(f"{name}: the sources write it, and there is no {file_of(name)}")
    listed = set(re.findall(r"^\| \[?`?([a-z0-9_-]+\.json)", (FOLDER / "README.md").read_text(), re.M))
    if listed != set(schemas):
        complain(f"README.md lists other files: {sorted(listed ^ set(schemas))}")

    count = try_mutations(validators, [d for _, d in made.values()], set())
    print(f"{len(made)} documents in {len(seen)} forms are as their schemas say; "
          f"{count} changed ones fail" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


sys.exit(main())
