#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time and peak memory of every command on N and on 2N tensors: whether they grow faster than N.
scaling.py MX [--tensors N] [--prefix CHARACTERS] [--only PATTERN]
--prefix begins all names with so many equal characters. docs/security.md has a run of it."""
import argparse
import fnmatch
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
parser.add_argument('mx', type=pathlib.Path)
parser.add_argument('--tensors', type=int, default=100000)
parser.add_argument('--prefix', type=int, default=0)
parser.add_argument('--only', default='*')


def model(path, count, prefix):
    """`count` tensors of two blocks each."""
    def entries():
        yield '{'
        for i in range(count):
            yield (f'{"," if i else ""}"{"p" * prefix}layers.{i // 64}.experts.{i % 64}.up_proj.weight":'
                   f'{{"dtype":"F32","shape":[2,32],"data_offsets":[{256 * i},{256 * i + 256}]}}')
        yield '}'
    block = struct.pack('<32f', *((i * 37 % 64 - 31.5) / 16 for i in range(32)))
    with open(path, 'wb') as file:  # in pieces: a child's peak memory counts this process's, too
        file.write(struct.pack('<Q', sum(map(len, entries()))))
        for entry in entries():
            file.write(entry.encode())
        for _ in range(count):
            file.write(2 * block)


# Later commands read what earlier ones wrote.
COMMANDS = {
    'tensors': 'tensors m.safetensors',
    'tensors --json': 'tensors m.safetensors -q --json o.json',
    'analyze': 'analyze m.safetensors -r mxfp8:scale=rceil --json a.json',
    'analyze --html': 'analyze m.safetensors -r mxfp4 -q --html o.html',
    'analyze --csv': 'analyze m.safetensors -r mxfp4 -r mxfp8 -r nvfp4 -q --csv o.csv',
    'analyze --group': 'analyze m.safetensors -r mxfp4 --group experts.* -q --json o.json',
    'compare': 'compare m.safetensors -q --json c.json',
    'cluster': 'cluster m.safetensors -r mxfp8 -q --json o.json',
    'diff': 'diff m.safetensors m.safetensors -r mxfp4 -q --json o.json',
    'quantize': 'quantize m.safetensors -r mxfp4 -q -o o.safetensors',
    'quantize --packed': 'quantize m.safetensors -r mxfp4 --packed -q -o p.safetensors.index.json',
    'dequantize': 'dequantize p.safetensors.index.json -q -o o.safetensors',
    'analyze packed': 'analyze p.safetensors.index.json -r mxfp4 -q --json o.json',
    'rosetta': 'rosetta p.safetensors.index.json -q --json o.json',
    'quantize to shards': 'quantize m.safetensors -r mxfp4 -q -o x.safetensors.index.json',
    'tensors of shards': 'tensors x.safetensors.index.json -q',
    'quantize to HDF5': 'quantize m.safetensors -r mxfp8 -q -o o.h5',
    'tensors of HDF5': 'tensors o.h5 -q',
    'report': 'report a.json -q --html o.html',
    'gate': 'gate a.json --rule nrmse<0.5 -q',
    'plan': 'plan a.json --bits 9 -q --json plan.json',
    'quantize --plan': 'quantize m.safetensors --plan plan.json -q -o o.safetensors --keep-rest',
    'diff of results': 'diff a.json a.json -q --json o.json',
    'show': 'show m.safetensors',
    'analyze --shard': 'analyze m.safetensors -r mxfp4 --shard 1/2 -q --json p1.json',
    'analyze --shard 2': 'analyze m.safetensors -r mxfp4 --shard 2/2 -q --json p2.json',
    'merge': 'merge p1.json p2.json -q --json o.json',
    'tensors --parts': 'tensors m.safetensors --parts 8',
    'watch': 'watch m.safetensors m.safetensors -r mxfp4 --role-pattern norm=* -q --log w.jsonl',
}


def run(mx, words, folder):
    """CPU seconds, peak MiB and exit code."""
    with subprocess.Popen([mx, *words], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        said = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        print(f'{" ".join(words)}: exit code {process.returncode}: {said.decode().strip()[:200]}', file=sys.stderr)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, process.returncode


def main():
    args = parser.parse_args()
    mx = str(args.mx.resolve())
    n = args.tensors
    print(f'| command | {n} tensors | {2 * n} | ratio | peak MiB | {2 * n} | ratio |\n'
          '|---|---:|---:|---:|---:|---:|---:|')
    with tempfile.TemporaryDirectory(prefix='mx-scaling.') as scratch:
        folders = [pathlib.Path(scratch) / str(i) for i in (1, 2)]
        for i, folder in enumerate(folders, 1):
            folder.mkdir()
            model(folder / 'm.safetensors', i * n, args.prefix)
        for name, command in COMMANDS.items():
            if not fnmatch.fnmatch(name, args.only):
                continue
            (cpu, peak, code), (cpu2, peak2, code2) = (run(mx, command.split(), f) for f in folders)
            if {code, code2} <= {0, 1}:
                print(f'| `{name}` | {cpu:.2f} s | {cpu2:.2f} s | {cpu2 / max(cpu, 0.01):.1f} '
                      f'| {peak:.0f} | {peak2:.0f} | {peak2 / peak:.1f} |', flush=True)


if __name__ == '__main__':
    main()
