#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mx killed at random moments, run twice with one output, on files that change while it reads them, on full
disks, and under limits and environments of others: what is left is whole, what is said is one line.
disturbances.py MX SOURCE [--rounds N] [Kill|Race|Changes|Full|Limits|Environments|Same...]
With --rounds, every case is repeated N times and the counts are printed; tests run a few rounds."""
import argparse
import collections
import hashlib
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

parser = argparse.ArgumentParser()
parser.add_argument('mx', type=pathlib.Path)
parser.add_argument('source', type=pathlib.Path)
parser.add_argument('--rounds', type=int, default=0)
parser.add_argument('kinds', nargs='*')
ARGS = parser.parse_intermixed_args()
MX = str(ARGS.mx.resolve())
VERSION = subprocess.run([MX, 'version'], capture_output=True, text=True).stdout
RELEASE = 'build type' in VERSION and 'Release' in VERSION

MODEL = 'model.safetensors'
TRAIN = ('--steps', '40', '--checkpoint-every', '5', '--dump', '20', '-q', '--threads', '1')


def sharded(recipe):
    return ('quantize', MODEL, '-r', recipe, '-q', '-o', 'o/m.safetensors.index.json', '--max-shard-size',
            '100kB')


# What is written, by the command that writes it; all outputs are in o/.
OUTPUTS = {
    'documents': ('analyze', MODEL, '-r', 'mxfp4', '-r', 'nvfp4', '-q', '--json', 'o/o.json', '--csv',
                  'o/o.csv', '--html', 'o/o.html', '--markdown', 'o/o.md'),
    'tensors': ('quantize', MODEL, '-r', 'mxfp4', '-q', '-o', 'o/o.safetensors'),
    'packed': ('quantize', MODEL, '-r', 'mxfp8', '--packed', '-q', '-o', 'o/o.h5'),
    'blocks': ('analyze', MODEL, '-r', 'mxfp4', '-q', '--blocks', 'o/o.h5'),
    'shards': sharded('mxfp4'),
    'repaired': ('lint', 'sharded', '--fix', '-q', '-o', 'o/fixed'),
    'training': ('train', 'proxy', '--width', '32', '--depth', '2', '--batch', '32', '-r', 'mxfp8',
                 *TRAIN, '-o', 'o/run'),
    'log': ('watch', 'steps', '--once', '-q', '-r', 'mxfp8', '--log', 'o/w.jsonl', '--prometheus',
            'o/w.prom'),
}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Disturbed(unittest.TestCase):
    few = 2  # rounds of a test

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix='mx-disturbed.')
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)
        cls.mx('synth', '-o', MODEL, '--preset', 'tiny', '-q')
        (cls.folder / 'sharded').mkdir()
        cls.mx('quantize', MODEL, '-r', 'mxfp8', '-q', '-o', 'sharded/m.safetensors.index.json', '--max-shard-size',
               '100kB')
        (cls.folder / 'steps').mkdir()
        for step in (1, 2, 3):
            cls.mx('synth', '-o', f'steps/step{step}.safetensors', '--preset', 'tiny', '--seed', step, '-q')

    @classmethod
    def start(cls, *words, **more):
        return subprocess.Popen([MX, *map(str, words)], cwd=cls.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **more)

    @classmethod
    def mx(cls, *words, codes=(0,), **more):
        with cls.start(*words, **more) as run:
            said = run.communicate()[1].decode(errors='replace')
        if run.returncode not in codes:
            raise AssertionError(f'mx {" ".join(map(str, words))}: exit code {run.returncode}: {said}')
        return said

    def fresh(self, holding=None):
        shutil.rmtree(self.folder / 'o', ignore_errors=True)
        if holding:
            shutil.copytree(self.folder / holding, self.folder / 'o')
        else:
            (self.folder / 'o').mkdir()

    def files(self, temporary=False):
        """The digests of what is in o/."""
        found = [p for p in (self.folder / 'o').rglob('*') if p.is_file()]
        return {str(p.relative_to(self.folder)): digest(p) for p in found
                if ('.tmp' in p.name) == temporary}

    def written(self, name):
        """What a run that nothing disturbs writes, and its seconds."""
        self.fresh()
        start = time.monotonic()
        self.mx(*OUTPUTS[name], codes=(0, 1))
        return self.files(), time.monotonic() - start

    def rounds(self, name):
        self.counts = collections.Counter()
        for i in range(ARGS.rounds or self.few):
            yield random.Random(f'{name} {i}')
        if ARGS.rounds:
            said = ', '.join(f'{what} {count}' for what, count in sorted(self.counts.items()))
            print(f'{type(self).__name__} {name}: {ARGS.rounds} rounds, {said}', flush=True)

    def one_line(self, said):
        self.assertEqual(said.count('\n'), 1, said[:2000])


class Kill(Disturbed):
    def kill(self, words, seconds, draw, how):
        run = self.start(*words)
        # Half of the moments near the end, where files are put in place.
        share = draw.random() if draw.random() < 0.5 else 1 - 0.15 * draw.random()
        try:
            run.wait(1.05 * seconds * share)
        except subprocess.TimeoutExpired:
            run.send_signal(how)
        said = run.communicate()[1].decode(errors='replace')
        self.counts['ended first' if run.returncode >= 0 and run.returncode < 128 else 'killed'] += 1
        if how != signal.SIGKILL:
            self.assertEqual(self.files(temporary=True), {}, said)

    def killed(self, name, then, holding=None):
        whole, seconds = self.written(name)
        for how in (signal.SIGKILL, signal.SIGTERM):
            for draw in self.rounds(f'{name} {how.name}'):
                self.fresh(holding)
                self.kill(OUTPUTS[name], seconds, draw, how)
                then(whole)

    def whole_or_absent(self, whole):
        for file, sha in self.files().items():
            self.assertEqual(sha, whole[file], file)

    def test_documents(self):
        self.killed('documents', self.whole_or_absent)

    def test_tensors(self):
        self.killed('tensors', self.whole_or_absent)

    def test_packed(self):
        self.killed('packed', self.whole_or_absent)

    def test_blocks(self):
        self.killed('blocks', self.whole_or_absent)

    def test_repaired_copy(self):
        index = 'o/fixed/model.safetensors.index.json'

        def index_last(whole):
            files = self.files()
            if files.get(index) == whole[index]:
                self.assertEqual(files, whole)
            files.pop(index, None)
            for file, sha in files.items():
                self.assertEqual(sha, whole[file], file)
        self.killed('repaired', index_last)

    def test_log(self):
        def again(whole):
            self.mx(*OUTPUTS['log'], codes=(0, 1))
            self.assertEqual(self.files(), whole)
        self.killed('log', again)

    def test_training(self):
        def resumed(whole):
            if not (self.folder / 'o/run/checkpoint.safetensors').exists():
                return
            self.mx('train', '--resume', 'o/run', *TRAIN)
            self.assertEqual(self.files(), whole)
        self.killed('training', resumed)

    def model(self):
        """What is measured of o/'s model; None if mx says that it is not complete."""
        if not (self.folder / 'o/m.safetensors.index.json').exists():
            return None
        with self.start('analyze', 'o/m.safetensors.index.json', '-r', 'mxfp8', '-q', '--csv',
                        'model.csv') as run:
            said = run.communicate()[1].decode()
        if run.returncode == 3:
            self.assertIn('its files are not complete', said)
            return None
        self.assertEqual((run.returncode, said), (0, ''))
        return digest(self.folder / 'model.csv')

    def test_shards_over_those_of_another_run(self):
        self.fresh()
        self.mx(*sharded('mxfp8'))
        old = self.model()
        shutil.rmtree(self.folder / 'old', ignore_errors=True)
        shutil.copytree(self.folder / 'o', self.folder / 'old')
        self.written('shards')
        new = self.model()
        self.assertNotEqual(old, new)
        self.killed('shards', lambda _: self.assertIn(self.model(), (old, new, None)), holding='old')

    def test_parts_that_are_missing_are_named(self):
        count = 3
        for ending, first, to in (('json', ('analyze', '-r', 'mxfp4', '-r', 'nvfp4'), '--json'),
                                  ('safetensors', ('quantize', '-r', 'mxfp4'), '-o')):
            def part(i, folder):
                return (first[0], MODEL, *first[1:], '--shard', f'{i}/{count}', to,
                        f'{folder}/{i}.{ending}', '--threads', '1', '-q')
            self.mx(first[0], MODEL, *first[1:], to, f'one.{ending}', '-q')
            self.fresh()
            start = time.monotonic()
            for i in range(1, count + 1):
                self.mx(*part(i, 'o'))
            seconds = (time.monotonic() - start) / count
            whole = self.files()
            for draw in self.rounds(f'parts, {ending}'):
                self.fresh()
                self.mx(*part(count, 'o'))
                for i in range(1, count):
                    self.kill(part(i, 'o'), seconds, draw, signal.SIGKILL)
                self.whole_or_absent(whole)
                self.merge(ending, to, part, count)

    def merge(self, ending, to, part, count):
        there = [i for i in range(1, count + 1) if (self.folder / f'o/{i}.{ending}').exists()]
        result = self.folder / f'all.{ending}'
        for _ in range(2):  # and once more with those that it named
            result.unlink(missing_ok=True)
            done = subprocess.run([MX, 'merge', *(f'o/{i}.{ending}' for i in there), to, result, '-q'],
                                  cwd=self.folder, capture_output=True, text=True)
            missing = [f'--shard {i}/{count}' for i in range(1, count + 1) if i not in there]
            self.assertEqual(done.returncode, 1 if missing else 0, done.stderr)
            self.assertEqual(result.exists(), not missing)
            lines = done.stdout.splitlines()
            self.assertEqual(len(lines), len(missing))
            for line, words in zip(lines, missing):
                self.assertIn(words, line)
            for i in range(1, count + 1):
                if i not in there:
                    self.mx(*part(i, 'o'))
            there = list(range(1, count + 1))
        self.assertEqual(digest(result), digest(self.folder / f'one.{ending}'))


class Race(Disturbed):
    few = 4

    def both(self, name, one, other):
        """Two runs with one output: it is that of one of them."""
        known = []
        for words in (one, other):
            self.fresh()
            self.mx(*words)
            known.append(self.files())
        self.assertNotEqual(*known)
        for draw in self.rounds(name):
            self.fresh()
            first = self.start(*one)
            time.sleep(0.02 * draw.random())
            runs = first, self.start(*other)
            for run in runs:
                said = run.communicate()[1].decode(errors='replace')
                if run.returncode != 0:
                    self.assertEqual(run.returncode, 3, said)
                    self.one_line(said)
            self.counts[f'exit codes {runs[0].returncode} {runs[1].returncode}'] += 1
            self.assertEqual(self.files(temporary=True), {})
            self.assertIn(self.files(), known)

    def test_documents(self):
        one = OUTPUTS['documents'][:6]
        self.both('documents', (*one, '-q', '--json', 'o/o.json'), (*one[:4], '-q', '--json', 'o/o.json'))

    def test_tensors(self):
        self.both('tensors', OUTPUTS['tensors'],
                  ('quantize', MODEL, '-r', 'mxfp8', '-q', '-o', 'o/o.safetensors'))

    def test_shards(self):
        self.both('shards', sharded('mxfp4'), sharded('mxfp8'))


class Changes(Disturbed):
    few = 1

    def test_a_file_changes_while_it_is_read(self):
        self.mx('synth', '--preset', 'small', '-q', '-o', 'big.safetensors')
        self.mx('quantize', 'big.safetensors', '-r', 'mxfp8', '-q', '-o', 'big.h5')
        for ending in ('safetensors', 'h5'):
            content = (self.folder / f'big.{ending}').read_bytes()
            start = time.monotonic()
            self.mx('analyze', f'big.{ending}', '-r', 'mxfp4', '-q', '--json', 'o.json')
            seconds = time.monotonic() - start
            for how in ('shorter', 'zeros', 'other bytes', 'replaced'):
                for draw in self.rounds(f'{ending} {how}'):
                    self.change(ending, how, content, seconds, draw)

    def change(self, ending, how, content, seconds, draw):
        file = self.folder / f'run.{ending}'
        file.write_bytes(content)
        run = self.start('analyze', file.name, '-r', 'mxfp4', '-q', '--json', 'o.json')
        time.sleep(seconds * draw.random())
        if how == 'shorter':
            os.truncate(file, draw.choice([0, 10, len(content) // 2, len(content) - 1]))
        elif how == 'zeros':
            os.truncate(file, 0)
            os.truncate(file, len(content))
        elif how == 'other bytes':
            with open(file, 'r+b') as out:
                out.write(draw.randbytes(1 << 20))
        else:
            (self.folder / 'new').write_bytes(draw.randbytes(1000))
            os.replace(self.folder / 'new', file)
        said = run.communicate(timeout=600)[1].decode(errors='replace')
        self.counts[f'exit code {run.returncode}'] += 1
        self.assertIn(run.returncode, (0, 3), said)
        if run.returncode == 3:
            self.one_line(said)


class Full(Disturbed):
    """Outputs in a file system that is full after some KiB."""

    mount = 'mount -t tmpfs -o size=$0k none o || exit 77; "$@" 2>said; code=$?; cp -a o/. kept/; exit $code'

    def full(self, name, kib, whole):
        self.fresh()
        kept = self.folder / 'kept'
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        done = subprocess.run(['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c', self.mount, str(kib), MX,
                               *OUTPUTS[name]], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode == 77:
            self.skipTest('no file system of our own: ' + done.stderr.decode().strip())
        said = (self.folder / 'said').read_text()
        self.fresh('kept')
        self.counts[f'exit code {done.returncode}'] += 1
        self.assertIn(done.returncode, (0, 1, 3), f'{name} {kib} KiB: {said}')
        if done.returncode == 3:
            line = said if name != 'log' else said.splitlines(keepends=True)[-1]
            self.one_line(line)
            self.assertIn('No space left', line)
        self.assertEqual(self.files(temporary=True), {}, said)
        if name == 'training' and not (self.folder / 'o/run/checkpoint.safetensors').exists():
            return
        if name in ('training', 'log'):  # with space again, they go on
            self.mx(*(('train', '--resume', 'o/run', *TRAIN) if name == 'training' else OUTPUTS[name]), codes=(0, 1))
            self.assertEqual(self.files(), whole, f'{name} {kib} KiB')
        elif name in ('shards', 'repaired'):  # an index last: without it there is no model
            if not any(file.endswith('index.json') for file in self.files()):
                whole = {**whole, **self.files()}
            self.assertEqual({**whole, **self.files()}, whole, f'{name} {kib} KiB')
        else:
            self.assertEqual({**whole, **self.files()}, whole, f'{name} {kib} KiB')

    @unittest.skipUnless(shutil.which('unshare'), 'no unshare')
    def test_full_disks(self):
        self.counts = collections.Counter()
        for name in OUTPUTS:
            whole, _ = self.written(name)
            size = sum(p.stat().st_size for p in (self.folder / 'o').rglob('*') if p.is_file()) >> 10
            few = (4, size // 2, max(size - 4, 4))
            for kib in sorted({*few, *range(4, size, max(size // ARGS.rounds, 4))} if ARGS.rounds else set(few)):
                self.full(name, kib, whole)
        self.assertGreater(self.counts['exit code 3'], len(OUTPUTS))
        if ARGS.rounds:
            print(f'Full: {dict(self.counts)}', flush=True)


class Limits(Disturbed):
    def limited(self, name, codes, **limits):
        """One line and nothing half written, or success."""
        self.fresh()

        def lower():
            for what, value in limits.items():
                resource.setrlimit(getattr(resource, 'RLIMIT_' + what), (value, value))
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        run = self.start(*OUTPUTS[name], preexec_fn=lower)
        said = run.communicate()[1].decode(errors='replace')
        if 'error while loading shared libraries' in said or 'static TLS' in said:
            self.counts['no start'] += 1
            return
        self.counts[f'exit code {run.returncode}'] += 1
        self.assertIn(run.returncode, codes, f'{name} {limits}: {said}')
        if run.returncode > 1:
            # watch also says what it finds, before it fails.
            self.one_line(said if name != 'log' else said.splitlines(keepends=True)[-1])
        self.assertEqual(self.files(temporary=True), {}, said)
        if run.returncode > 1 and name not in ('training', 'log'):  # which are continued
            for file, sha in self.files().items():
                self.assertEqual(sha, self.whole[name][file], f'{name} {limits}: {file}')

    def sweep(self, what, values, codes=(0, 1, 3, 4)):
        self.whole = {name: self.written(name)[0] for name in OUTPUTS}
        self.counts = collections.Counter()
        for name in OUTPUTS:
            for value in values:
                self.limited(name, codes, **{what: value})
        if ARGS.rounds:
            print(f'Limits {what}: {dict(self.counts)}', flush=True)

    def test_sizes_of_files(self):
        sizes = (0, 4096, 100000)
        self.sweep('FSIZE', [*sizes, *range(8192, 400000, 16384)] if ARGS.rounds else sizes)

    def test_open_files(self):
        few = (4, 8, 16)
        self.sweep('NOFILE', range(3, 40) if ARGS.rounds else few)

    @unittest.skipUnless(RELEASE, 'sanitizers map more')
    def test_address_space(self):
        # With less, the kernel cannot map the program and ends it: see test_address_space_to_start.
        program = os.path.getsize(MX)  # with kernels for every GPU 90 MB
        mib = [program + (m << 20) for m in (range(45, 400, 6) if ARGS.rounds else (45, 75, 115, 300))]
        self.sweep('AS', mib)

    @unittest.skipUnless(RELEASE, 'sanitizers map more')
    def test_address_space_to_start(self):
        """From what is too little to load the libraries to what is enough."""
        def started(kib):
            run = self.start('tensors', MODEL, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (kib << 10, kib << 10)))
            said = run.communicate()[1].decode(errors='replace')
            return None if run.returncode == 127 or run.returncode == -signal.SIGKILL else (run.returncode, said)

        low, high = 0, 400 << 10
        while high - low > 16:
            middle = (low + high) // 2
            low, high = (middle, high) if started(middle) is None else (low, middle)
        codes = collections.Counter()
        for kib in range(high, high + (10 << 10), 16 if ARGS.rounds else 128):
            code, said = started(kib) or (127, '')
            codes[code] += 1
            self.assertIn(code, (0, 3, 4, 127), f'{kib} KiB: {said}')
            if code in (3, 4):
                self.one_line(said)
        self.assertGreater(codes[4], 0)
        self.assertGreater(codes[0], 0)


class Environments(Disturbed):
    def test_outputs_do_not_depend_on_them(self):
        words = ('analyze', MODEL, '-r', 'mxfp4', '-r', 'nvfp4', '-q')
        result = self.folder / 'env.json'
        self.mx(*words, '--json', result)
        known = digest(result)
        for change in ({}, {'HOME': None}, {'HOME': '/nonexistent'}, {'HOME': '/etc/passwd'},
                       {'TMPDIR': '/nonexistent'}, {'TMPDIR': ''}, {'LC_ALL': 'de_DE.UTF-8'},
                       {'LC_ALL': 'tr_TR.UTF-8'}, {'LC_ALL': 'C'}, {'LC_ALL': 'xx_YY'},
                       {'TZ': ':/etc/passwd'}, {'COLUMNS': '1'}, {'COLUMNS': '99999999999'}, {'TERM': ''},
                       {'OMP_NUM_THREADS': '1'}, {'OMP_NUM_THREADS': '64'}, {'OMP_NUM_THREADS': 'x'},
                       {'OMP_NUM_THREADS': '0'}, {'OMP_NUM_THREADS': '-5'}, {'OMP_DYNAMIC': 'true'},
                       {'OMP_SCHEDULE': 'dynamic,1'}, {'OMP_THREAD_LIMIT': '1'},
                       {'OMP_CANCELLATION': 'true'}, {'OMP_MAX_ACTIVE_LEVELS': '0'},
                       {'OMP_PROC_BIND': 'true', 'OMP_PLACES': 'cores'},
                       {'MALLOC_PERTURB_': '165', 'MALLOC_ARENA_MAX': '1'},
                       {'GLIBC_TUNABLES': 'glibc.cpu.hwcaps=-AVX512F,-AVX2'}):
            with self.subTest(change):
                environment = {**os.environ, **{k: v for k, v in change.items() if v is not None}}
                for name in [k for k, v in change.items() if v is None]:
                    environment.pop(name, None)
                result.unlink()
                self.mx(*words, '--json', result, env=environment)
                self.assertEqual(digest(result), known)


class Same(Disturbed):
    """The bytes of every output are the same for any number of threads, backend, locale and folder."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        any_bits = (cls.folder / MODEL).read_bytes()[-65536:]  # as F16: NaN, Inf and subnormals among them
        (cls.folder / 'any.bin').write_bytes(random.Random(1).randbytes(65536) + any_bits)
        bits = ('any.bin', '--shape', '256x256', '--dtype', 'F16')
        documents = ('-q', '--json', 'o/o.json', '--csv', 'o/o.csv', '--html', 'o/o.html', '--markdown', 'o/o.md')
        cls.commands = {
            **{name: words for name, words in OUTPUTS.items() if name not in ('repaired', 'log', 'training')},
            'any': ('analyze', *bits, '-r', 'mxfp4:scale=search', '-r', 'mxfp6:round=stochastic', '-r', 'nvfp4',
                    '--decompose', '--histograms', *documents),
            'compare': ('compare', *bits, '--element', 'e4m3,e2m1', '--scale', 'floor,even', *documents),
            'cluster': ('cluster', *bits, '-r', 'mxfp8:scale=floor', *documents),
            'diff': ('diff', MODEL, 'steps/step2.safetensors', '-r', 'mxfp4', *documents),
            'rosetta': ('rosetta', *bits, '-r', 'mxfp4:scale=even', '-r', 'mxfp4:scale=rceil', *documents),
            'stochastic': ('quantize', *bits, '-r', 'nvfp4:round=stochastic', '--packed', '-q', '-o',
                           'o/o.safetensors'),
            'gemm': ('gemm', 'x.npy', 'x.npy', '--transpose-b', '-r', 'mxfp8', '-m', 'fp32.fma', *documents),
            'train': ('train', 'proxy', '--width', '32', '--depth', '2', '--batch', '32', '-r', 'mxfp8', '--steps',
                      '10', '-q', '-o', 'o/run'),
        }
        cls.mx('quantize', MODEL, '-t', 'model.layers.0.self_attn.q_proj.weight', '-r', 'mxfp8', '-q', '-o', 'x.npy')

    def same(self, what, *more, **environment):
        """The outputs of all commands, with more words or in another environment, are those of one thread."""
        for name, words in self.commands.items():
            if name not in self.known:
                self.fresh()
                self.mx(*words, '--threads', '1', codes=(0, 1))
                self.known[name] = self.files()
                self.assertNotEqual(self.known[name], {})
            self.fresh()
            self.mx(*words, *(more or ('--threads', '2')), codes=(0, 1), env={**os.environ, **environment})
            with self.subTest(command=name, under=what):
                self.assertEqual(self.files(), self.known[name])

    known = {}

    def test_threads(self):
        for threads in (2, 3, 7, 64) if ARGS.rounds else (2, 3):
            self.same('threads', '--threads', threads)

    def test_backends(self):
        backends = [line.split()[1] for line in VERSION.splitlines()
                    if line.startswith('backend ') and '(not here' not in line]
        self.assertIn('scalar', backends)
        for backend in backends:
            self.same(backend, '--backend', backend)

    def test_locales(self):
        """That of Germany has decimal commas, that of Turkey another i."""
        with tempfile.TemporaryDirectory() as locales:
            for name in ('de_DE', 'tr_TR'):
                path = f'{locales}/{name}.UTF-8'
                made = shutil.which('localedef') and subprocess.run(
                    ['localedef', '-i', name, '-f', 'UTF-8', path], capture_output=True)
                if not made or not os.path.exists(path):
                    self.skipTest('localedef makes no ' + name)
                self.same(name, LOCPATH=locales, LC_ALL=f'{name}.UTF-8')

    def test_folders(self):
        """In another folder, with a space in its name, at another time zone, as from cron."""
        here = self.folder
        other = here / 'an other' / 'folder'
        shutil.copytree(here, other, ignore=shutil.ignore_patterns('o', 'an other'))
        self.same('here')
        type(self).folder = other
        try:
            self.same('an other/folder', TZ='Pacific/Kiritimati', HOME='/nonexistent', TERM='dumb')
        finally:
            type(self).folder = here


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *ARGS.kinds], verbosity=1)
