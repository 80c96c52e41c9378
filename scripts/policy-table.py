#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the limits of the policy stop in checkpoints: a Markdown table with a row for each FILE, and the tensors
that reach a limit.
policy-table.py MX [-r RECIPE]... [--role ROLE] [--only GLOB] [--axis N] FILE...
An operand is a tensor of ROLE (weight) with two axes or more and whole blocks along K. A cell has the largest
figure of the operands ('mx explain policy' defines them): dB below normal data by recipe, the others over all
recipes. "1 + 3" under a recipe: 1 operand ruled out, 3 to be evaluated. Normal data are 2^20 values drawn
here, so dB are exact to about 0.01."""
import argparse
import json
import math
import pathlib
import random
import struct
import subprocess
import tempfile

parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
parser.add_argument('mx', type=pathlib.Path)
parser.add_argument('-r', '--recipe', action='append')
parser.add_argument('--role', default='weight')
parser.add_argument('--only', default='*', help='of the tensors that match')
parser.add_argument('--axis', help='along which blocks lie, instead of K')
parser.add_argument('files', nargs='+', metavar='FILE')

BLOCK = 32
DOMINATED = 0.1  # setting of the policy: share of the squares in the largest element


def run(mx, *words):
    return json.loads(subprocess.run([mx, *words, '--json', '-'], check=True, stdout=subprocess.PIPE).stdout)


def write_normal(path):
    rng = random.Random(1)
    data = struct.pack('<1048576f', *(rng.gauss(0, 1) for _ in range(1 << 20)))
    header = b'{"normal.weight":{"dtype":"F32","shape":[256,4096],"data_offsets":[0,4194304]}}'
    path.write_bytes(struct.pack('<Q', len(header)) + header + data)


def number(x):
    """null is not defined; infinities are strings."""
    return math.nan if x is None else float(x)


def figures(r, normal):
    """Those of 'mx explain policy' for a tensor under a recipe; NaN: not judged."""
    nrmse, crest, n = number(r['nrmse']), number(r['crest_factor']), r['elements']
    dominated = crest * crest >= DOMINATED * n
    gain = abs(number(r['gain']) - normal['gain']) - nrmse * crest / math.sqrt(n)
    return {'saturated_block_rate': number(r['saturated_block_rate']),
            'collapsed_block_rate': number(r['collapsed_block_rate']),
            'clamp_rate': r['clamp_rate'],
            'gain_error': math.nan if dominated else max(gain, 0),
            'sqnr_below_normal': math.nan if dominated else normal['sqnr_db'] - number(r['sqnr_db']),
            'underflow_rate': r['underflow_rate'],
            'underflow_energy': nrmse ** 2 * number(r['underflow_error_share'])}


def text(name, value):
    if math.isnan(value):
        return '-'
    return f'{value:.2f} dB' if name == 'sqnr_below_normal' else f'{100 * value:.3g} %'


def largest(name, values):
    return text(name, max((v for v in values if not math.isnan(v)), default=math.nan))


def main():
    args = parser.parse_args()
    recipes = args.recipe or ['mxfp8:scale=rceil', 'mxfp6:scale=even', 'nvfp4', 'mxfp4:scale=even']
    along = [f'{r}{"," if ":" in r else ":"}axis={args.axis}' if args.axis else r for r in recipes]
    policy = 'training' if args.role == 'gradient' else 'inference'
    limits = {v['figure']: v for v in run(args.mx, 'explain', 'policy', policy)['results']
              if v['rule'] == 'veto' and v['role'] in ('', args.role) and v['figure'] != 'poisoned'}
    others = [f for f in (*limits, 'underflow_rate') if f != 'sqnr_below_normal']
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'normal.safetensors'
        write_normal(path)
        on_normal = measured(args.mx, path, recipes)
    print('| checkpoint | operands |', ' | '.join(f'dB, {r}' for r in recipes), '|', ' | '.join(others), '|',
          ' | '.join(f'stopped, {r}' for r in recipes), '|')
    print('|---|' + '---:|' * (1 + 2 * len(recipes) + len(others)))
    named = []
    for file in args.files:
        results = measured(args.mx, file, along, '--role', args.role, '--tensor', args.only)
        by_recipe, stopped = [], []
        for recipe, rows, normal in zip(recipes, results, on_normal):
            tensors = {r['tensor']: figures(r, normal[0]) for r in rows if operand(r, args.axis)}
            by_recipe.append(list(tensors.values()))
            count = {'no': 0, 'evaluate': 0}
            for tensor, f in tensors.items():
                reached = [(verdict, figure) for verdict in count for figure, limit in limits.items()
                           if limit[verdict] is not None and f[figure] >= limit[verdict]]
                if not reached:
                    continue
                count[reached[0][0]] += 1
                why = ', '.join(dict.fromkeys(f'{figure} {text(figure, f[figure])}' for _, figure in reached))
                named.append(f'- {pathlib.Path(file).name}: {tensor}, {recipe}: {reached[0][0]}: {why}')
            stopped.append(f'{count["no"]} + {count["evaluate"]}' if any(count.values()) else '0')
        every = [f for of in by_recipe for f in of]
        cells = [largest('sqnr_below_normal', [f['sqnr_below_normal'] for f in of]) for of in by_recipe]
        cells += [largest(c, [f[c] for f in every]) for c in others]
        print(f'| {pathlib.Path(file).name} | {len(by_recipe[0])} |', ' | '.join(cells + stopped), '|')
    print('', *named, sep='\n')


def measured(mx, file, recipes, *words):
    """The results of each recipe."""
    words += tuple(w for r in recipes for w in ('-r', r))
    results = run(mx, 'analyze', file, '--decompose', *words)['results']
    names = list(dict.fromkeys(r['recipe'] for r in results))  # canonical, in the order given
    return [[r for r in results if r['recipe'] == n] for n in names] or [[]] * len(recipes)


def operand(r, axis):
    extent = r['contraction']['extent'] if axis is None else r['shape'][int(axis)]
    return sum(n > 1 for n in r['shape']) > 1 and extent > 0 and extent % BLOCK == 0


if __name__ == '__main__':
    main()
