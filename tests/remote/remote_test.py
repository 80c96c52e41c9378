# SPDX-License-Identifier: Apache-2.0
"""mx on files at addresses, beside mx on the same files on disk. remote_test.py MX FIXTURES"""
import json
import os
import pathlib
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import server

MX, FIXTURES = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
VERSION = subprocess.run([MX, 'version'], capture_output=True, text=True).stdout
RELEASE = re.search(r'^build type +Release', VERSION, re.MULTILINE) is not None
COMMIT = server.COMMIT
TOKEN = 'hf_SecretOfTheTest'
AT_COMMIT = f'hf://org/name@{COMMIT}'


def safetensors(path, tensors, metadata=''):
    """F32 zeros; `tensors`: name -> elements."""
    header, at = {'__metadata__': {'padding': metadata}}, 0
    for name, count in tensors.items():
        header[name] = {'dtype': 'F32', 'shape': [count // 64, 64],
                        'data_offsets': [at, at + 4 * count]}
        at += 4 * count
    text = json.dumps(header).encode()
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text)
        file.write(random.Random(1).randbytes(min(at, 1 << 20)))
        file.truncate(8 + len(text) + at)
    return 8 + len(text)


class Remote(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix='mx-remote.'))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        shutil.copytree(FIXTURES, cls.folder, dirs_exist_ok=True)
        cls.header = safetensors(cls.folder / 'big.safetensors',
                                 {'first': 1 << 18, 'middle': 1 << 21, 'last': 1 << 18},
                                 'x' * 70000)
        (cls.folder / 'model').mkdir()
        for name in ('model.safetensors.index.json', 'a.safetensors', 'b.safetensors'):
            path = cls.folder / 'model' / name
            if name.endswith('.json'):
                path.write_text(json.dumps({'weight_map': {
                    'wa': 'a.safetensors', 'va': 'a.safetensors', 'wb': 'b.safetensors'}}))
            else:
                safetensors(path, {'w' + name[0]: 1 << 16, 'v' + name[0]: 640})
        cls.server = server.Server(cls.folder)
        cls.addClassCleanup(cls.server.shutdown)

    def setUp(self):
        self.server.reset()
        self.traps = self.server.traps

    prefix = ()  # of every command line

    def run_mx(self, *words, **environment):
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(('HF_', 'AWS_'))}
        return subprocess.run(
            [*self.prefix, MX, *map(str, words)], capture_output=True, text=True, cwd=self.folder,
            env={**inherited, 'HF_ENDPOINT': self.server.address, 'HF_TOKEN': TOKEN, **environment})

    def fine(self, *words, **environment):
        done = self.run_mx(*words, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, *words, says, code=3, **environment):
        done = self.run_mx(*words, **environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
        self.assertIn(says, done.stderr)
        self.assert_no_secrets(done.stdout + done.stderr)
        return done.stderr

    def assert_no_secrets(self, text):
        for secret in (TOKEN, 'signature-', '/store/'):
            self.assertNotIn(secret, text)

    def plain(self, file):
        return f'{self.server.address}/files/{file}'

    def assert_same(self, file, address, shown, *words):
        """The same JSON but for the path, and tensor scales, whose values only a local file states."""
        local = self.fine('analyze', file, '--json', '-', '--quiet', *words).stdout
        remote = self.fine('analyze', address, '--json', '-', '--quiet', *words).stdout
        self.assert_no_secrets(remote)
        folder = shown[:-len(str(file))]
        mine, theirs = json.loads(local), json.loads(remote.replace(folder, ''))
        for given, document in ((file, mine), (address, theirs)):
            for path in document['inputs']:
                self.assertIn(path.pop('given', given), (given, file))
        for tensor in mine.get('tensor_scales', []):
            for scale in tensor['scales']:
                for member in ('value', 'count', 'min', 'max'):
                    scale.pop(member, None)
        self.assertEqual(theirs, mine)

    # The formats.

    def test_same_results_from_ranges_and_from_the_hub(self):
        for file in ('safetensors.safetensors', 'model/model.safetensors.index.json', 'gguf.gguf',
                     'gguf_blocks.gguf', 'bfloat16.npy', 'numpy.npz', 'torch_dtypes.pt',
                     'torch_views.pt', 'torch_distributed/.metadata', 'quantized.safetensors'):
            with self.subTest(file):
                self.assert_same(file, self.plain(file), self.plain(file))
                self.assert_same(file, f'hf://org/name/{file}', f'{AT_COMMIT}/{file}')

    def test_folders_of_the_hub(self):
        self.assert_same('model/model.safetensors.index.json', 'hf://org/name/model',
                         f'{AT_COMMIT}/model/model.safetensors.index.json')
        self.assert_same('torch_distributed/.metadata', 'hf://org/name@v1/torch_distributed/',
                         f'{AT_COMMIT}/torch_distributed/.metadata')
        self.refused('tensors', 'hf://org/name/onnx', says='has no such file (404)')
        self.refused('tensors', 'hf://org/name@nowhere', says='has no such file (404)')

    def test_several_inputs_and_two_models(self):
        whole = self.fine('analyze', 'model/a.safetensors', 'model/b.safetensors', '--csv', '-', '-q')
        parts = self.fine('analyze', 'hf://org/name/model/a.safetensors',
                          self.plain('model/b.safetensors'), '--csv', '-', '-q')
        self.assertEqual(
            parts.stdout.replace(f'{AT_COMMIT}/', '').replace(self.plain(''), ''), whole.stdout)
        self.fine('diff', 'model/a.safetensors', 'hf://org/name/model/a.safetensors')

    def test_parts(self):
        address = 'hf://org/name/model'
        whole = self.fine('analyze', address, '--json', '-', '-q').stdout
        for i in '12':
            self.fine('analyze', address, '--shard', f'{i}/2', '--json', f'part-{i}.json', '-q')
        self.assertEqual(
            self.fine('merge', 'part-1.json', 'part-2.json', '--input', address, '--json', '-',
                      '-q').stdout, whole)
        self.server.reset()
        self.refused('merge', 'part-1.json', 'part-2.json', code=2, says='name the file with --input')
        self.assertEqual(self.server.seen, [])

    def test_an_index_names_files_beside_it(self):
        index = self.folder / 'far.safetensors.index.json'
        names = ['../bfloat16.npy', '%2e%2e/model/a.safetensors', 'model/.%2E/model/a.safetensors',
                 self.plain('model/a.safetensors'), 'hf://org/name/model/a.safetensors',
                 's3://bucket/a.safetensors', '/model/a.safetensors']
        for name in names:
            index.write_text(json.dumps({'weight_map': {'wa': name}}))
            for address in (self.plain(index.name), f'hf://org/name/{index.name}', index.name):
                self.server.reset()
                self.refused('tensors', address, says='is outside the directory of the index',
                             AWS_ENDPOINT_URL=self.server.address)
                asked = {path.split('?')[0].rsplit('/', 1)[-1] for path, _, _ in self.server.requests}
                self.assertLessEqual(asked, {index.name})
        index.unlink()

    def test_shards_are_opened_at_once(self):
        (self.folder / 'many').mkdir()
        names = [f's{i:02}.safetensors' for i in range(32)]
        for name in names:
            safetensors(self.folder / 'many' / name, {name[:3]: 64})
        (self.folder / 'many' / 'model.safetensors.index.json').write_text(
            json.dumps({'weight_map': {name[:3]: name for name in names}}))

        def until(path, number, *_):  # another was requested, or all were
            asked = [path.rsplit('/', 1)[-1] for path, _, _ in self.server.requests]
            return '/many/s' not in path or len(asked) > number or set(names) <= set(asked)

        self.traps.until = until
        self.fine('tensors', 'hf://org/name/many')
        self.assertEqual(self.server.alone, 0)

    def test_what_needs_a_file_on_disk_says_so(self):
        for file in ('h5py.h5', 'keras.keras', 'keras.weights.h5'):
            self.refused('tensors', self.plain(file), says='fetch it first')

    # The number of requested bytes.

    def test_headers_alone_are_asked_for(self):
        self.fine('tensors', self.plain('big.safetensors'))
        self.assertEqual(self.server.asked, self.header)
        gguf = self.folder / 'big.gguf'
        words = struct.pack('<Q', 1) + b'k' + struct.pack('<IIQ', 9, 8, 50000)
        words += b''.join(struct.pack('<Q', 8) + b'%08d' % i for i in range(50000))
        header = b'GGUF' + struct.pack('<IQQ', 3, 1, 1) + words
        header += struct.pack('<Q', 1) + b'w' + struct.pack('<IQQIQ', 2, 64, 1 << 14, 0, 0)
        gguf.write_bytes(header + b'\0' * (-len(header) % 32))
        os.truncate(gguf, gguf.stat().st_size + 4 * (64 << 14))
        self.server.reset()
        self.fine('tensors', self.plain('big.gguf'))
        self.assertLess(self.server.asked, 2 * len(header))

    def test_a_tensor_alone_is_asked_for(self):
        for name, size in (('first', 4 << 18), ('middle', 4 << 21), ('last', 4 << 18)):
            self.server.reset()
            self.fine('analyze', self.plain('big.safetensors'), '--tensor', name)
            self.assertLessEqual(self.server.asked - self.header, 1.05 * size)
            self.assertGreaterEqual(self.server.asked - self.header, size)

    def test_each_byte_is_asked_for_once(self):
        self.fine('analyze', self.plain('big.safetensors'), '--threads', '4')
        size = (self.folder / 'big.safetensors').stat().st_size
        self.assertEqual(self.server.asked, size)
        ranges = sorted((first, last) for _, first, last in self.server.requests)
        self.assertEqual(ranges[0][0], 0)
        for (_, last), (first, _) in zip(ranges, ranges[1:]):
            self.assertEqual(first, last + 1)

    def test_two_passes_are_announced(self):
        safetensors(self.folder / 'huge.safetensors', {'w': (1 << 24) + 64})
        done = self.fine('analyze', self.plain('huge.safetensors'), '-r', 'nvfp4')
        self.assertIn('67109120 bytes of remote files are fetched twice', done.stderr)
        done = self.fine('analyze', self.plain('huge.safetensors'), '-r', 'mxfp4')
        self.assertNotIn('twice', done.stderr)
        (self.folder / 'huge.safetensors').unlink()

    # The traps.

    def test_a_server_that_ignores_ranges(self):
        self.traps.ignore_ranges = True
        safetensors(self.folder / 'wide.safetensors', {'w': 9 << 20})
        self.refused('tensors', self.plain('wide.safetensors'), says='answers 200')
        self.refused('tensors', 'hf://org/name/wide.safetensors',
                     says=f': {self.server.store}, where the server redirects to, answers 200')
        (self.folder / 'wide.safetensors').unlink()
        # Small files need no more than one range.
        self.assert_same('gguf.gguf', self.plain('gguf.gguf'), self.plain('gguf.gguf'))

    def test_signed_addresses_that_expire(self):
        self.traps.signature_uses = 1
        self.assert_same('big.safetensors', 'hf://org/name/big.safetensors',
                         f'{AT_COMMIT}/big.safetensors')
        self.traps.store_status = 403
        self.refused('tensors', 'hf://org/name/big.safetensors', says='refuses (403)')

    def test_requests_to_wait(self):
        for headers in ({'Retry-After': '1'}, {'RateLimit': '"resolvers";r=0;t=1'},
                        {'RateLimit': 'limit=9, remaining=0, reset=1'}):
            self.server.reset()
            self.server.traps.throttle = [(429, headers)]
            start = time.monotonic()
            self.fine('tensors', self.plain('bfloat16.npy'))
            self.assertGreaterEqual(time.monotonic() - start, 1)
        self.server.traps.throttle = [(429, {'Retry-After': '100000'})]
        self.refused('tensors', self.plain('bfloat16.npy'), says='asks to wait 100000 seconds')
        self.server.traps.throttle = [(429, {'Retry-After': '400'})]
        self.refused('tensors', self.plain('bfloat16.npy'), says='asks to wait 400 seconds')
        self.server.traps.throttle = [(503, {}), (500, {}), (502, {})]
        self.fine('tensors', self.plain('bfloat16.npy'))

    def test_answers_without_end(self):
        chunked = (b'HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/1\r\n'
                   b'Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n')
        for begin, piece, says in (
                (b'HTTP/1.1 404 Not Found\r\n\r\n', b'x' * 65536, 'no such file (404)'),
                (b'HTTP/1.1 403 Forbidden\r\n\r\n', b'x' * 65536, 'refuses (403)'),
                (b'', b'HTTP/1.1 100 Continue\r\n\r\n' * 100, 'answers 100'),
                (chunked, b'X-Trailer: y\r\n' * 1000, 'looks like text')):
            self.traps.endless = begin, piece
            self.refused('tensors', self.plain('bfloat16.npy'), says=says)

    def test_listings_of_something_else(self):
        commit = b'{"sha":"%s","siblings":' % COMMIT.encode()
        for listing, says in ((b'[' * (1 << 24), 'nested more than 64 deep'),
                              (b'{"a":' * (1 << 22), 'nested more than 64 deep'),
                              (b'[' + b'[],' * 1000 + b'[]]', 'names no commit'),
                              (commit + b'[]', 'names no commit'),
                              (commit + b'"x"}', 'holds something else'),
                              (commit + b'{"rfilename":"x"}}', 'holds something else'),
                              (commit + b'[1]}', 'holds something else'),
                              (commit + b'[[]]}', 'holds something else'),
                              (commit + b'[{}]}', 'holds something else'),
                              (commit + b'[{"rfilename":1}]}', 'holds something else'),
                              (commit + b'[{"rfilename":"../x"}]}', 'holds something else')):
            self.traps.listing = listing
            self.refused('tensors', 'hf://org/name', says=says)

    def test_files_too_large_for_the_store(self):
        self.traps.store_status = 400
        self.refused('tensors', 'hf://org/name/big.safetensors', says='beyond some 400 GB')

    def test_a_file_that_changes(self):
        for forgets in (False, True):
            self.server.reset()
            self.server.traps.changes_at = 4
            self.server.traps.forgets_if_range = forgets
            self.refused('analyze', self.plain('big.safetensors'), says='changed while it was read')

    def test_bodies_that_end_early(self):
        self.traps.cut_at = (1, 2, 4)
        self.assert_same('big.safetensors', self.plain('big.safetensors'),
                         self.plain('big.safetensors'))
        self.traps.always_cut = True
        self.refused('analyze', self.plain('big.safetensors'), says='again and again')

    def test_other_ranges_than_asked_for(self):
        self.traps.shifts = True
        self.refused('analyze', self.plain('big.safetensors'), says='another range')
        self.server.reset()
        self.server.traps.off_by_one = 1
        self.refused('analyze', self.plain('big.safetensors'), says='another range')

    def test_servers_without_validators(self):
        self.traps.no_validator = True
        self.assert_same('gguf.gguf', self.plain('gguf.gguf'), self.plain('gguf.gguf'))

    def test_redirects_without_end_and_to_elsewhere(self):
        for where, says in ((f'/org/name/resolve/{COMMIT}/again', 'without end'),
                            ('file:///etc/passwd', 'no https address')):
            self.traps.redirects_to = where
            self.refused('tensors', 'hf://org/name/bfloat16.npy', says=says)

    def test_nobody_there(self):
        with socket.socket() as taken:
            taken.bind(('127.0.0.1', 0))  # nobody listens there, and nobody else can
            self.refused('tensors', f'http://127.0.0.1:{taken.getsockname()[1]}/x.npy',
                         says='no answer')
        self.refused('tensors', self.plain('nowhere.npy'), says='no such file (404)')

    def test_an_empty_file(self):
        (self.folder / 'empty').write_bytes(b'')
        self.refused('tensors', self.plain('empty'), says='an empty file')

    # Secrets.

    def test_the_token_goes_to_the_hub_alone(self):
        self.traps.token = TOKEN
        self.fine('analyze', 'hf://org/name/gguf.gguf')
        kinds = {kind: headers['Authorization'] for kind, headers in self.server.seen}
        self.assertEqual(kinds, {'api': f'Bearer {TOKEN}', 'hub': f'Bearer {TOKEN}', 'store': None})
        self.server.reset()
        self.fine('tensors', self.plain('gguf.gguf'))
        self.assertIsNone(self.server.seen[0][1]['Authorization'])
        self.server.traps.token = 'another'
        self.refused('tensors', 'hf://org/name/gguf.gguf', says='HF_TOKEN in the environment')
        self.refused('tensors', 'hf://org/name/gguf.gguf', code=2, HF_TOKEN=f'{TOKEN}\nX-Evil: 1',
                     says='HF_TOKEN in the environment holds a control character')

    def test_a_token_in_names_is_in_no_output(self):
        folder = self.folder / 'echo'
        folder.mkdir()
        safetensors(folder / 'x.safetensors', {f'layers.0.{TOKEN.upper()}.weight': 64})
        address, outputs = 'hf://org/name/echo', ('json', 'csv', 'markdown', 'html')
        for command in ('tensors', 'analyze', 'cluster'):
            for output in outputs:
                recipe = [] if command == 'tensors' else ['-r', 'mxfp8']
                done = self.fine(command, address, *recipe, '--' + output, '-')
                self.assertIn('(secret)', done.stdout)
                self.assertNotIn(TOKEN.lower(), (done.stdout + done.stderr).lower())
        done = self.run_mx('analyze', address, '-r', 'mxfp8', '--tensor', 'nothing')
        self.assert_no_secrets(done.stdout + done.stderr)
        shutil.rmtree(folder)

    def test_addresses_with_secrets_are_refused_without_repeating_them(self):
        for address in ('https://me:{}@host/x.npy', 'https://{}@host/x.npy',
                        'https://host/x.npy?X-Amz-Signature={}', 'https://host/x.npy#{}'):
            said = self.refused('tensors', address.format(TOKEN), code=2, says='may be secret')
            self.assertIn('host/x.npy', said)

    def test_no_message_of_a_random_failure_holds_a_secret(self):
        chance = random.Random(24)
        failures = 0
        for _ in range(25):
            self.server.reset()
            traps = self.server.traps
            traps.token = chance.choice([None, TOKEN, 'another'])
            traps.signature_uses = chance.choice([0, 1, 2])
            traps.ignore_ranges = chance.random() < 0.2
            traps.shifts = chance.random() < 0.2
            traps.off_by_one = chance.choice([0, 0, 1])
            traps.changes_at = chance.choice([0, 1, 2, 3])
            traps.store_status = chance.choice([0, 0, 400, 401, 403, 404, 410, 418])
            traps.throttle = [(chance.choice([418, 404, 500]), {'Retry-After': '0'})
                              for _ in range(chance.choice([0, 0, 1]))]
            done = self.run_mx('analyze', 'hf://org/name/big.safetensors', '--json', '-', '-q')
            failures += done.returncode != 0
            self.assertIn(done.returncode, (0, 3))
            self.assert_no_secrets(done.stdout + done.stderr)
        self.assertGreater(failures, 5)

    # Invalid addresses, and files that cannot be read.

    def test_addresses_that_are_none(self):
        for address, says in (('hf://org', 'hf://ORG/NAME'), ('hf://org/na me/x', 'hf://ORG/NAME'),
                              ('hf://org/name@/x', 'hf://ORG/NAME'),
                              ('hf://org/name/../x', 'hf://ORG/NAME'), ('s3://bucket', 's3://BUCKET'),
                              ('s3://bucket/', 'is a folder'), ('https://:x/y', 'no address'),
                              (self.plain(''), 'is a folder')):
            self.refused('tensors', address, code=2, says=says)

    def test_digests_are_refused_and_pages_do_without(self):
        self.refused('analyze', self.plain('gguf.gguf'), '--sha256', '--json', '-', code=2,
                     says='fetch it first')
        page = self.folder / 'page.html'
        self.fine('analyze', self.plain('gguf.gguf'), '--html', page)
        self.assertIn('not recorded', page.read_text())

    # Speed and memory.

    def test_ranges_are_requested_before_they_are_needed(self):
        safetensors(self.folder / 'long.safetensors',
                    {f'layers.{i}.{name}': count for i in range(12)
                     for name, count in (('weight', 1 << 20), ('norm', 640), ('bias', 640))})
        layer = 4 << 20
        size = (self.folder / 'long.safetensors').stat().st_size

        def until(path, number, first, last):  # one that begins after it was requested
            begins = [b for _, b, e in self.server.requests if e - b > layer // 4]
            return last - first <= layer // 4 or last > size - layer or max(begins) > last

        self.traps.until = until
        self.fine('analyze', self.plain('long.safetensors'), '-r', 'mxfp4')
        (self.folder / 'long.safetensors').unlink()
        self.assertEqual(self.server.alone, 0)

    @unittest.skipUnless(RELEASE, 'not a release build')
    @unittest.skipUnless(RELEASE, 'sanitizers take more address space')
    def test_a_lack_of_threads_is_said_in_a_line(self):
        # A thread has as much stack as the main one may have: more than the address space.
        self.prefix = ('sh', '-c', 'ulimit -s 8000000 && ulimit -v 4000000 || exit 77; exec "$@"', 'sh')
        if self.run_mx('version').returncode == 77:
            self.skipTest('the limit of the stack cannot be raised')
        for words in (('tensors',), ('analyze', '--threads', 1)):
            self.refused(*words, self.plain('big.safetensors'), code=4,
                         says='the system grants no further thread')

    def test_memory_is_bounded(self):
        safetensors(self.folder / 'gib.safetensors', {f'w{i}': 1 << 26 for i in range(5)})
        report = self.folder / 'memory'
        done = subprocess.run(
            [sys.executable, '-c', 'import resource, subprocess, sys\n'
             'code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n'
             'print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\nsys.exit(code)',
             MX, 'analyze', self.plain('gib.safetensors'), '-r', 'mxfp4'],
            capture_output=True, text=True)
        (self.folder / 'gib.safetensors').unlink()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(int(done.stdout) * 1024, 400 << 20)


if __name__ == '__main__':
    if not re.search(r'^remote files +yes', VERSION, re.MULTILINE):
        print('skipped: mx was built without libcurl (libcurl4-openssl-dev)')
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
