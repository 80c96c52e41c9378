#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Documents that others wrote name no outputs, addresses or files elsewhere, and their text reaches
no output as it is: untrusted.py MX SOURCES"""
import csv
import html.parser
import io
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

MX, SOURCES = (pathlib.Path(path).resolve() for path in sys.argv[1:3])

# Names that drive terminals, hide or reverse text, end lines, or are markup.
HOSTILE = ['\x1b[2J', '\x1bc', '\x07', '\x9b31m', '\x85', '\x7f', 'a\nb', '\n::error::x', '\r', '\u202ex',
           '\u2066', '\u200e', '\u061c', '\ufeff', '\u200b', '\xad', '\u2028', '\ufff9', '\U000e0041', '\x00z',
           '|', '`', '<b>', '"', '\\']
MARKUP = ['</script><script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "'><svg/onload=alert(1)>", '<!--',
          ']]>', '[x](javascript:alert(1))', '![x](http://127.0.0.1:1/x)', '``` # h', '``', '~~~', '=1+1', '@SUM(1)',
          'x,"y"', '%0A::error::x', '$(touch pwned)', '`touch pwned`', "';touch pwned;'", 'x' * 3000]
ENDINGS = ('json', 'csv', 'markdown', 'html')
FOREIGN = {'img', 'iframe', 'object', 'embed', 'form', 'base', 'onload', 'onerror', 'javascript'}
FORBIDDEN = re.compile('[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f'
                       '\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]')


def safetensors(path, names):
    header, at = {}, 0
    for name in names:
        header[name] = {'dtype': 'F32', 'shape': [4, 64], 'data_offsets': [at, at + 1024]}
        at += 1024
    text = json.dumps(header).encode()
    values = struct.pack('<64f', *(1 + i / 64 for i in range(64))) * (at // 256)
    path.write_bytes(struct.pack('<Q', len(text)) + text + values)


def npy(path, kind, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    path.write_bytes(b'\x93NUMPY\x01\0' + struct.pack('<H', len(header)) + header + values)


class Tags(html.parser.HTMLParser):
    """The names of the tags and of the attributes of a page, and the schemes of its links."""

    def __init__(self):
        super().__init__()
        self.found = set()
        self.scripts = 0

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == 'script'
        self.found.add(tag)
        for name, value in attrs:
            self.found.add(name)
            if name in ('href', 'src', 'xlink:href') and value:
                self.found.add(value.split(':')[0].strip().lower())


class Untrusted(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='mx-untrusted.'))
        self.addCleanup(shutil.rmtree, self.folder)
        safetensors(self.folder / 'm.safetensors', [f'layers.{i}.up_proj.weight' for i in range(4)])
        # Counts the connections to an address on this machine.
        self.visits = 0
        listener = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(listener.close)
        self.address = f'http://127.0.0.1:{listener.getsockname()[1]}'

        def count():
            while True:
                try:
                    visitor, _ = listener.accept()
                except OSError:
                    return
                self.visits += 1
                visitor.close()
        threading.Thread(target=count, daemon=True).start()

    def mx(self, *words, code=0, says=''):
        done = subprocess.run(
            [MX, *map(str, words)], capture_output=True, cwd=self.folder, errors='replace',
            env={**os.environ, 'AWS_ENDPOINT_URL': self.address, 'HF_ENDPOINT': self.address,
                 'HF_TOKEN': 'hf_TokenOfATest', 'NO_PROXY': '*'})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(says, done.stderr)
        self.assertEqual(self.visits, 0, 'an address was requested')
        return done

    def path(self, name, text=None):
        path = self.folder / name
        if text is not None:
            path.write_text(text)
        return path

    def parts(self, *options, command='analyze', model='m.safetensors'):
        for i in (1, 2):
            self.mx(command, model, '-r', 'mxfp4', *options, '--shard', f'{i}/2', '-q', '--json',
                    f'part-{i}.json')

    def changed(self, change):
        """Parts whose identity is changed in the same way."""
        for i in (1, 2):
            lines = self.path(f'part-{i}.json').read_text().split('\n')
            at = next(n for n, line in enumerate(lines) if line.startswith('"part":'))
            part = json.loads(lines[at][len('"part":'):-1])
            change(part)
            lines[at] = '"part":' + json.dumps(part, separators=(',', ':')) + ','
            self.path(f'bad-{i}.json', '\n'.join(lines))
        return 'bad-1.json', 'bad-2.json'

    # Parts.

    def test_a_part_names_no_output_and_no_option_of_its_own(self):
        self.parts()
        victim = self.path('victim', 'mine')
        for name, value in (('markdown', 'victim'), ('html', 'victim'), ('csv', 'victim'),
                            ('json', 'victim'), ('output', 'victim'), ('blocks', 'victim'),
                            ('title', 'text'), ('parts', 'victim'), ('threads', '9'),
                            ('backend', 'scalar'), ('exact', None), ('help', None),
                            ('json=victim', None), ('', None), ('-r', 'mxfp8'),
                            ('raw --json', 'victim')):
            for command in ('analyze', 'diff', 'quantize'):
                def change(part):
                    part['given']['command'] = command
                    part['given']['options'].append(
                        {'option': name, **({} if value is None else {'value': value})})
                self.mx('merge', *self.changed(change), '-q', '--json', 'all.json', code=3,
                        says='which is no option of a part')
        self.assertEqual(victim.read_text(), 'mine')
        self.assertFalse(self.path('all.json').exists())
        for command in ('watch', 'train', 'report', 'analyze; touch pwned', '--help', ''):
            def rename(part):
                part['given']['command'] = command
            # Also where the command would only be printed, for sh.
            for files in (self.changed(rename), ('bad-1.json',)):
                done = self.mx('merge', *files, '-q', '--json', 'all.json', code=3,
                               says='invalid data about its part')
                self.assertEqual(done.stdout, '')
        # Values stay values, and files files.
        for change in (lambda p: p['given']['options'].append({'option': 'tensor'}),
                       lambda p: p['given']['options'].append({'option': 'policy'}),
                       lambda p: p['given']['files'].append('--json=victim'),
                       lambda p: p['given']['options'].append(
                           {'option': 'tensor', 'value': 'x --json victim'})):
            done = subprocess.run([MX, 'merge', *self.changed(change), '-q', '--csv', 'all.csv'],
                                  cwd=self.folder, capture_output=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(victim.read_text(), 'mine')

    def test_a_part_names_no_address_and_no_file_elsewhere(self):
        self.parts()
        (self.folder / 'below').mkdir()
        for file in (f'{self.address}/x.safetensors', 's3://bucket/x.safetensors',
                     'hf://org/name/x', str(self.folder / 'm.safetensors'), '../x', 'below/../x',
                     '/dev/zero', '%2e%2e/x'):
            def change(part):
                part['given']['files'] = [file]
            for files in (self.changed(change), ('bad-2.json',)):
                done = self.mx('merge', *files, '-q', '--json', 'all.json', code=2,
                               says='which is not below this folder: name the file with --input')
                self.assertEqual(done.stdout, '')
        for name, value in (('recipe', f'nvfp4:outer=given:{self.address}/x'),
                            ('recipe', 'nvfp4:outer=given:hf://org/name/x'),
                            ('recipe', 'mxfp4:transform=matrix,transform_size=2,transform_file=/dev/zero')):
            def change(part):
                part['given']['options'] = [{'option': name, 'value': value}]
            self.mx('merge', *self.changed(change), '-q', '--json', 'all.json', code=2,
                    says='is not below this folder')

    def test_files_elsewhere_are_named_again(self):
        model = self.folder / 'm.safetensors'
        policy = self.path('policy.json', '{"schema":"mx.policy/1","name":"mine","version":"1",'
                           '"extends":"inference","results":[]}\n')
        self.parts('--policy', policy, model=model)
        words = ('merge', 'part-1.json', 'part-2.json', '-q', '--json', 'all.json', '--html')
        self.mx(*words[:-1], code=2, says='--input')
        self.mx(*words[:-1], '--input', model, code=2, says='give the file to mx merge')
        self.mx(*words[:-1], '--input', model, '--policy', policy)
        self.mx('analyze', model, '-r', 'mxfp4', '--policy', policy, '-q', '--json', 'one.json')
        self.assertEqual(self.path('all.json').read_bytes(), self.path('one.json').read_bytes())
        policy.write_text(policy.read_text() + ' ')
        self.mx(*words[:-1], '--input', model, '--policy', policy, code=3, says='changed between them')
        self.parts()
        self.mx('merge', 'part-1.json', 'part-2.json', '-q', '--json', 'all.json', '--policy', policy,
                code=2, says='made without')

    # Plans, policies, packed files, runs.

    def test_recipes_in_files_name_no_address_and_no_file_elsewhere(self):
        matrix = '{}:transform=matrix,transform_size=2,transform_file={}'
        (self.folder / 'turn.txt').write_text('0 1 -1 0\n')
        for recipe, fine in ((f'nvfp4:outer=given:{self.address}/x', False),
                             ('nvfp4:outer=given:s3://bucket/x', False),
                             (matrix.format('mxfp4', '/dev/zero'), False),
                             (matrix.format('mxfp4', '../turn.txt'), False),
                             (matrix.format('mxfp4', 'turn.txt'), True)):
            self.path('plan.json', json.dumps({'schema': 'mx.plan/1', 'results': [
                {'tensor': f'layers.{i}.up_proj.weight', 'recipe': recipe} for i in range(4)]}))
            self.path('policy.json', json.dumps(
                {'schema': 'mx.policy/1', 'name': 'mine', 'version': '1', 'extends': 'inference',
                 'results': [{'rule': 'candidate', 'role': 'weight', 'recipe': recipe,
                              'verdict': 'evaluate', 'native_only': False, 'why': 'x', 'source': 'y'}]}))
            words = {'code': 0} if fine else {'code': 3, 'says': 'is not below this folder'}
            self.mx('quantize', 'm.safetensors', '--plan', 'plan.json', '-o', 'q.safetensors', '-q', **words)
            if not fine:
                self.mx('analyze', 'm.safetensors', '--policy', 'policy.json', '-q', **words)
        self.mx('quantize', 'm.safetensors', '-r', matrix.format('mxfp4', 'turn.txt'), '--packed', '-o',
                'q.safetensors', '-q')
        self.mx('dequantize', 'q.safetensors', '-o', 'd.safetensors', '-q')
        packed = self.path('q.safetensors').read_bytes().replace(b'=turn.txt', b'=/dev/xyz')
        self.path('q.safetensors').write_bytes(packed)
        self.mx('dequantize', 'q.safetensors', '-o', 'd.safetensors', '-q', code=3,
                says='is not below this folder')

    def test_a_checkpoint_of_a_training_names_no_file_elsewhere(self):
        text = self.path('text', 'all work and no play makes jack a dull boy\n' * 6)
        shape = ('--width', '32', '--depth', '1', '--context', '16', '--batch', '32')
        self.mx('train', 'llama', '--text', text, *shape, '--steps', '1', '-o', 'run', '-q')
        self.mx('train', '--resume', 'run', '--steps', '2', '-q', code=3,
                says='which is not below this folder: name the file with --text')
        self.mx('train', '--resume', 'run', '--steps', '2', '--text', 'text', '-q')
        self.mx('train', '--resume', 'run', '--steps', '3', '-q')
        self.mx('train', 'proxy', '--width', '32', '--steps', '1', '-o', 'own', '-q')
        self.mx('train', '--resume', 'own', '--steps', '2', '--data', 'text', '-q', code=3,
                says='--data: the run reads no such file')

    def test_a_recorded_training_names_no_file_elsewhere(self):
        cases = self.folder / 'cases'
        shutil.copytree(SOURCES / 'datasets' / 'vectors' / 'training', cases)
        (cases / 'proxy-d64.x').mkdir()  # so that the path exists
        shutil.copy(cases / 'proxy-d64.fp32.safetensors', self.folder / 'y.safetensors')
        case = cases / 'proxy-d64.json'
        case.chmod(0o644)
        case.write_text(case.read_text().replace('"fp32":', '"x/../../y":', 1))
        self.mx('verify', 'cases', code=3, says='its file is not beside the case')

    def test_results_name_no_file_elsewhere(self):
        self.mx('analyze', 'm.safetensors', '-r', 'mxfp4', '-q', '--json', 'r.json')
        self.mx('report', 'r.json', '-q', '--html', 'page.html')
        self.assertIn('was computed when this page', self.path('page.html').read_text())
        self.path('r.json', self.path('r.json').read_text().replace(
            '"path":"m.safetensors"', f'"path":"{self.folder}/m.safetensors"'))
        self.mx('report', 'r.json', '-q', '--html', 'page.html')
        self.assertNotIn('was computed when this page', self.path('page.html').read_text())

    # Text.

    def written(self, *command, codes=(0,)):
        """Runs a command with every kind of document: none has what `clean` forbids, a tag or an attribute
        that documents of harmless names lack, or a row of CSV of another length."""
        done = subprocess.run([MX, *map(str, command), *(word for ending in ENDINGS for word in (
            f'--{ending}', f'out.{ending}'))], capture_output=True, cwd=self.folder)
        self.assertIn(done.returncode, codes, done.stderr)
        self.clean(f'{command[0]} stdout', done.stdout)
        self.clean(f'{command[0]} stderr', done.stderr)
        texts = {ending: self.path(f'out.{ending}').read_bytes().decode() for ending in ENDINGS}
        for ending, text in texts.items():
            self.clean(f'{command[0]} {ending}', text)
        json.loads(texts['json'])
        self.assertLessEqual(len({len(row) for row in csv.reader(io.StringIO(texts['csv'], newline=''))}), 1)
        page = Tags()
        page.feed(texts['html'])
        self.assertEqual(page.found & FOREIGN, set(), command[0])
        self.assertLessEqual(page.scripts, 2, command[0])  # figures, and what moves them
        # Names are in spans and blocks of code, and what is elsewhere is escaped.
        rest = re.sub('^```sh\n.*\n```$', '', texts['markdown'], flags=re.M)
        rest = re.sub(r'(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)', '', rest)
        self.assertIsNone(re.search(r'(?<!\\)(<[a-z!/]|\]\()|^# h', rest, re.M | re.I), command[0])
        return done

    def test_every_command_escapes_names_of_tensors_and_files(self):
        names = [f'layers.{i}.{evil}.weight' for i, evil in enumerate(HOSTILE + MARKUP)]
        names += [f'layers.{i}.{evil}.input_layernorm.weight' for i, evil in enumerate(MARKUP)]
        evil = 'e\x1b[2J\u202e\n<b>`|"=1+1\'$(touch pwned)'
        lm = SOURCES / 'datasets/vectors/eval/llama'
        below = self.folder / evil
        below.mkdir()
        model = below / f'{evil}.safetensors'
        safetensors(model, names)
        one = ('-r', 'mxfp4')
        self.mx('quantize', model, *one, '--packed', '-o', below / 'q.safetensors')
        self.mx('analyze', model, *one, '-q', '--json', below / 'r.json')
        for i in (1, 2, 3):
            self.mx('analyze', model, *one, '--shard', f'{i}/3', '--page-sums', '-q', '--json', below / f'p{i}.json')
        shutil.copytree(lm, below / 'lm')
        config = json.loads((below / 'lm/config.json').read_text())
        config['quantization_config'] = {'quant_method': 'fp8', 'modules_to_not_convert': HOSTILE + MARKUP}
        shutil.copytree(lm, below / 'lint')
        (below / 'lint/config.json').write_text(json.dumps(config))
        npy(below / 'x.npy', '<f4', (32, 32), struct.pack('<1024f', *range(1024)))
        npy(below / 'ids.npy', '<i4', (40,), struct.pack('<40i', *range(40)))
        self.mx('vectors', *one, '-o', below / 'v.safetensors', '-q')
        (below / 'steps').mkdir()
        for step in (1, 2):
            safetensors(below / 'steps' / f'step{step}.safetensors', [n for n in names if 'norm' in n])
        run = ('train', 'proxy', '--width', '32', '--depth', '1', '--batch', '32', '--steps', '2')
        self.mx(*run, '-q', '-o', below / 'run')
        x = below / 'x.npy'
        commands = [
            ('tensors', model), ('analyze', model, *one), ('cluster', model, '-r', 'mxfp8:scale=floor'),
            ('compare', model, '--element', 'e2m1', '--scale', 'floor'), ('diff', model, model, *one),
            *(('show', model, name, *one) for name in names[26::4]), ('rosetta', model),
            ('plan', below / 'r.json', '--bits', '40', *one),
            ('report', below / 'r.json'), ('gate', below / 'r.json', '--rule', 'weight:nrmse<1e-9'),
            ('merge', *(below / f'p{i}.json' for i in (1, 2, 3)), '--input', model),
            ('lint', below / 'lint'), ('runs', below / 'run'),
            ('eval', below / 'lm', '--tokens', below / 'ids.npy', *one),
            ('gemm', x, x, '--transpose-b', *one), ('layer', '--x', x, '--w', x, '--dy', x, *one),
            ('verify', below / 'v.safetensors'), (*run, '-o', below / 'run2')]
        for command in commands:
            with self.subTest(command[0]):
                self.written(*command, codes=(0, 1))
        silent = {'quantize': ('quantize', model, *one, '-o', below / 'o.safetensors', '--verbose'),
                  'dequantize': ('dequantize', below / 'q.safetensors', '-o', below / 'd.safetensors', '--verbose'),
                  'watch': ('watch', below / 'steps', '--once')}
        wrong = [(name, model, '-r', 'mxfp4', '-t', 'absent') for name in ('analyze', 'compare', 'cluster', 'quantize')]
        wrong += [('merge', below / 'p1.json', '-q', '--json', 'all.json'),
                  ('tensors', below / 'absent\x1b.safetensors')]
        for command in (*silent.values(), *wrong):
            done = subprocess.run([MX, *map(str, command)], capture_output=True, cwd=self.folder)
            for text in (done.stdout, done.stderr):
                self.clean(' '.join(map(str, command)), text)
        listed = re.findall(r'^  (?:[A-Z][a-z]+(?: up)?)? +([a-z]+)  ', self.mx('help').stdout, re.M)
        nothing = {'synth', 'vectors', 'bench', 'study', 'explain', 'version', 'help'}  # read no file with names
        self.assertEqual({command[0] for command in commands} | set(silent) | nothing, set(listed))
        self.assertFalse((self.folder / 'pwned').exists())

    def clean(self, what, text):
        text = text if isinstance(text, str) else text.decode(errors='strict')
        found = FORBIDDEN.search(text.replace('\r\n', '\n') if what.endswith('csv') else text)
        self.assertIsNone(found, f'{what}: {found and text[max(0, found.start() - 60):found.end()]!r}')

    def test_hostile_names_are_escaped_in_every_output(self):
        names = [f'layers.{i}.{evil}.weight' for i, evil in enumerate(HOSTILE)]
        names += [f'layers.{i}.{evil}.input_layernorm.weight' for i, evil in enumerate(HOSTILE)]
        safetensors(self.folder / 'evil.safetensors', names)
        for command in (['tensors', 'evil.safetensors'], ['analyze', 'evil.safetensors', '-r', 'mxfp4', '--all'],
                        ['cluster', 'evil.safetensors', '-r', 'mxfp8:scale=floor'],
                        *(['show', 'evil.safetensors', name, '-r', 'mxfp4'] for name in names[1:12:3]),
                        ['diff', 'evil.safetensors', 'evil.safetensors', '-r', 'mxfp4']):
            self.written(*command)
        done = self.mx('--complete', 'analyze', 'evil.safetensors', '--tensor', '')
        self.assertRegex(done.stdout, r'\A([\w./-]*\n)*\Z')
        rules = ''.join(f'{name.split(".weight")[0]}*:nrmse<1e-9\n' for name in names
                        if not re.search('[\n\r:<"|]', name))
        rules = 'absent\x1b]0;x\x07\x00\u200b*:nrmse<1e-9\n' + rules
        self.path('rules.txt', rules)
        self.mx('analyze', 'evil.safetensors', '-r', 'mxfp4', '-q', '--json', 'out.json')
        # A member of results that others wrote.
        text = self.path('out.json').read_text()
        self.path('out.json', text.replace('"tensor":', '"\\u001b]0;x\\u0007\\u200b":1,"tensor":'))
        done = subprocess.run([MX, 'gate', 'out.json', '--rules', 'rules.txt', '--annotations', 'github',
                               '--junit', 'gate.xml', '--markdown', 'gate.md', '--csv', 'gate.csv'],
                              cwd=self.folder, capture_output=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(re.findall(b'^::error file=', done.stderr, re.M)), rules.count('\n'))
        for what, found in (('stdout', done.stdout), ('stderr', done.stderr)):
            self.clean('gate ' + what, found)
        for file in ('gate.xml', 'gate.md', 'gate.csv'):
            if self.path(file).exists():
                self.clean(file, self.path(file).read_bytes())
        self.mx('report', 'out.json', '-q', '--csv', 'out.csv', '--markdown', 'out.md')
        self.clean('report csv', self.path('out.csv').read_bytes())
        self.clean('report markdown', self.path('out.md').read_bytes())

    def test_monitoring_gets_names_that_it_can_read(self):
        (self.folder / 'run').mkdir()
        for step in (1, 2):
            safetensors(self.folder / 'run' / f'step{step}.safetensors',
                        [f'layers.0.{evil}.input_layernorm.weight' for evil in HOSTILE])
        done = self.mx('watch', 'run', '--once', '--prometheus', 'w.prom', '--log', 'w.jsonl')
        for what, text in (('stdout', done.stdout), ('w.prom', self.path('w.prom').read_bytes()),
                           ('w.jsonl', self.path('w.jsonl').read_bytes())):
            self.clean(what, text)

    def test_lines_about_long_names_are_short(self):
        text = json.dumps({'\x01' * 1000000: {'dtype': 'F32', 'shape': [1], 'data_offsets': [0, 5]}}).encode()
        self.path('long.safetensors').write_bytes(struct.pack('<Q', len(text)) + text + bytes(5))
        done = self.mx('tensors', 'long.safetensors', code=3)
        self.assertEqual(done.stderr.count('\n'), 1)
        self.assertLess(len(done.stderr), 10000)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=1)
