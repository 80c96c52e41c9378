#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small files that state, repeat or unpack much: mx takes bounded memory and time, and says what it
does not read in one line. limits.py MX"""
import io
import json
import os
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

MX = pathlib.Path(sys.argv[1]).resolve()
VERSION = subprocess.run([MX, 'version'], capture_output=True, text=True).stdout
RELEASE = 'build type' in VERSION and 'Release' in VERSION
SECONDS = 10 if RELEASE else 100

# Pickles -------------------------------------------------------------------------------------------


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return b'X' + struct.pack('<I', len(value)) + value


def integer(value):
    return b'\x8a\x08' + struct.pack('<q', value)


def integers(values):
    return b'(' + b''.join(map(integer, values)) + b't'


def dictionary(items):
    return b'}(' + b''.join(text(key) + value for key, value in items) + b'u'


def tensor(shape=(4,), strides=(1,), elements=4):
    storage = (b'(' + text('storage') + b'ctorch\nFloatStorage\n' + text('0') + text('cpu') +
               integer(elements) + b'tQ')
    return (b'ctorch._utils\n_rebuild_tensor_v2\n(' + storage + integer(0) + integers(shape) +
            integers(strides) + b'\x89ccollections\nOrderedDict\n)RtR')


def archive(pickle, elements=4):
    """A file of torch.save, its pickle compressed."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w') as file:
        file.writestr('a/data.pkl', b'\x80\x02' + pickle + b'.', zipfile.ZIP_DEFLATED, 9)
        file.writestr('a/data/0', bytes(4 * elements))
    return out.getvalue()


def named(name, state, module='torch.distributed.checkpoint.metadata'):
    return b'c' + module.encode() + b'\n' + name.encode() + b'\n)\x81' + state + b'b'


def distributed(folder, tensors, places, shard=None):
    """`places`: pickled keys of storage_data, each of which gets the whole shard."""
    shard = shard or archive(tensor())
    (folder / '__0_0.distcp').write_bytes(shard)
    info = named('_StorageInfo', dictionary([('relative_path', text('__0_0.distcp')),
                                             ('offset', integer(0)),
                                             ('length', integer(len(shard)))]),
                 'torch.distributed.checkpoint.filesystem')
    state = dictionary([('storage_data', b'}(' + b''.join(p + info for p in places) + b'u'),
                        ('state_dict_metadata', tensors)])
    (folder / '.metadata').write_bytes(b'\x80\x02' + named('Metadata', state) + b'.')


def place(name, offset):
    return named('MetadataIndex', dictionary([('fqn', text(name)), ('offset', offset)]))


def stored_tensor(size, chunks):
    properties = named('TensorProperties', b'(ctorch\nfloat32\nt')
    return named('TensorStorageMetadata', dictionary(
        [('properties', properties), ('size', size), ('chunks', b'](' + chunks + b'e')]))


def chunk(offsets, sizes):
    return named('ChunkStorageMetadata', dictionary([('offsets', offsets), ('sizes', sizes)]))


# Keys with one hash --------------------------------------------------------------------------------
# The hash of libstdc++ is MurmurHash64A with a seed that all programs share.

MASK = (1 << 64) - 1
FACTOR = 0xc6a4a7935bd1e995
INVERSE = pow(FACTOR, -1, 1 << 64)


def mixed(word):
    word = word * FACTOR & MASK
    return (word ^ word >> 47) * FACTOR & MASK


def unmixed(word):
    word = word * INVERSE & MASK
    return (word ^ word >> 47) * INVERSE & MASK


def after(state, word):
    return (state ^ mixed(word)) * FACTOR & MASK


def partner(state, word, target):
    """The word that leads to `target` behind `word`."""
    return unmixed(target * INVERSE & MASK ^ after(state, word))


def same_hash(count):
    state = 0xc70f6907 ^ 16 * FACTOR & MASK
    return [struct.pack('<QQ', i, partner(state, i, 12345)) for i in range(count)]


def same_hash_text(stages):
    """2^stages ASCII keys: of each stage, two pairs of words lead to one state."""
    state = 0xc70f6907 ^ 16 * stages * FACTOR & MASK
    keys = ['']
    for stage in range(stages):
        target, found, i = stage + 1, [], 0
        while len(found) < 2:
            pair = struct.pack('<Q', int.from_bytes(b'%08d' % i, 'little'))
            pair += struct.pack('<Q', partner(state, int.from_bytes(pair, 'little'), target))
            if all(0x20 <= c < 0x7f and c not in b'"\\' for c in pair):
                found.append(pair.decode())
            i += 1
        keys = [key + pair for key in keys for pair in found]
        state = target
    return keys


def safetensors(header, data=b''):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack('<Q', len(header)) + header + data


# Protocol buffers ----------------------------------------------------------------------------------


def varint(value):
    out = b''
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


class Limits(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix='mx-limits.')
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    memory = 1 << 30

    def limits(self):
        if RELEASE:  # sanitizers map more
            resource.setrlimit(resource.RLIMIT_AS, (self.memory, self.memory))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    def run_mx(self, *words):
        return subprocess.run([MX, *map(str, words)], capture_output=True, cwd=self.folder,
                              preexec_fn=self.limits)

    def both(self, name, content=None):
        """tensors and analyze of a file; what is refused is refused by both."""
        if content is not None:
            (self.folder / name).write_bytes(content)
        listed = self.run_mx('tensors', name)
        read = self.run_mx('analyze', name, '-q', '-r', 'mxfp4', '--json', '-', '--threads', '1')
        return listed, read

    def refused(self, name, says, content=None):
        for done in self.both(name, content):
            said = done.stderr.decode()
            self.assertEqual((done.returncode, said.count('\n')), (3, 1), said[:2000])
            self.assertIn(says, said)
            self.assertLess(len(said), 2000)

    def listed(self, name, content=None):
        """Listed, and read or left out."""
        listed, read = self.both(name, content)
        self.assertEqual((listed.returncode, listed.stderr[:2000]), (0, b''))
        if read.returncode != 0:
            self.assertEqual(read.returncode, 3, read.stderr[:2000])
            self.assertIn(b'nothing to do', read.stderr)
        return ' '.join(listed.stdout.decode(errors='replace').split())

    repeats = 'repeats or unpacks its contents so often'

    def test_axes(self):
        many = (1,) * 10000
        self.refused('a.pt', 'more than 64 axes',
                     archive(b'](' + tensor(many, many) + b'q\x05' + b'h\x05' * 20000 + b'e'))

    def test_names(self):
        long = dictionary([('x' * 60000, tensor() + b'q\x05'),
                           ('l', b'](' + b'h\x05' * 100000 + b'e')])
        self.refused('a.pt', self.repeats, archive(long))
        few = dictionary([('x' * 60000, tensor() + b'q\x05'), ('l', b'](h\x05h\x05e')])
        shown = self.listed('a.pt', archive(few))
        self.assertIn('shares its storage with ' + 'x' * 200 + '...', shown)

    def test_shared_keys(self):
        leaf = b'cx\nO\n)\x81' + dictionary([('t', tensor())]) + b'b'
        for bytes_of_key in (1 << 16, 1 << 22):
            pickle = dictionary([('k' * bytes_of_key, b'N'), ('w', leaf)]) + b'q\x00'
            for level in range(2):
                pickle += b'0](' + (b'h' + bytes([level])) * 1000 + b'eq' + bytes([level + 1])
            self.refused('a.pt', self.repeats, archive(pickle))

    def test_unpacked_pickles(self):
        last = b'0' + dictionary([('w', tensor())])
        for pickle in (b'](' + b'N\x85' * 2000000 + b'e', b']q\x00(' + b'N' * 5000000 + b'e',
                       (b'N' + b'\x94' * 7) * 2500000):
            self.refused('a.pt', self.repeats, archive(pickle + last))

    def test_keys_of_one_hash(self):
        keys = same_hash(60000)
        pickle = b'}(' + b''.join(text(key) + b'N' for key in keys) + text('w') + tensor() + b'u'
        self.listed('a.pt', archive(pickle))
        keys = same_hash_text(15)
        self.listed('a.safetensors', safetensors({'__metadata__': {key: '' for key in keys}}))
        self.refused('a.safetensors.index.json', "its shard 'x.safetensors' is missing",
                     json.dumps({'weight_map': {k: 'x.safetensors' for k in keys}}).encode())

    def test_zip_names(self):
        def directory(names):
            entries = b''.join(
                b'PK\1\2' + struct.pack('<HHHHHHIIIHHHHHII', 20, 20, 0, 0, 0, 0, 0, 0, 0, len(name),
                                        0, 0, 0, 0, 0, 0) + name for name in names)
            return entries + b'PK\5\6' + struct.pack('<HHHHIIH', 0, 0, len(names), len(names),
                                                     len(entries), 0, 0)
        # "ab" and "bA" have one hash in libzip.
        names = [''.join('bA' if i >> b & 1 else 'ab' for b in range(16)).encode() + b'.npy'
                 for i in range(60000)]
        self.refused('a.npz', 'chosen to collide', directory(names))
        one = directory([b'a.npy'])
        self.refused('a.npz', 'more than 4 directories', one + one[-22:] * 8)

    def test_spellings_of_one_shard(self):
        names = ['t%05d' % i for i in range(60)]
        header = {n: {'dtype': 'U8', 'shape': [0], 'data_offsets': [0, 0]} for n in names}
        (self.folder / 'a.safetensors').write_bytes(safetensors(header))
        spelled = {n: './' * i + 'a.safetensors' for i, n in enumerate(names)}
        (self.folder / 'm.safetensors.index.json').write_text(json.dumps({'weight_map': spelled}))
        done = self.run_mx('tensors', 'm.safetensors.index.json', '-q', '--json', '-')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)['inputs']), 2)

    def test_a_missing_tensor(self):
        names = ['t%06d' % i for i in range(100000)]
        header = {n: {'dtype': 'U8', 'shape': [0], 'data_offsets': [0, 0]} for n in names}
        (self.folder / 'a.safetensors').write_bytes(safetensors(header))
        listed = names[:-1] + ['zzz']
        self.refused('m.safetensors.index.json', "is not in its shard 'a.safetensors'",
                     json.dumps({'weight_map': {n: 'a.safetensors' for n in listed}}).encode())

    def test_packed_files(self):
        header, at = {'__metadata__': {'mx.schema': 'mx.packed/1', 'mx.recipe': 'mxfp8'}}, 0
        for i in range(40000):
            for part, dtype, size in (('codes', 'F8_E4M3', 32), ('scales', 'F8_E8M0', 1)):
                header['w%d.%s' % (i, part)] = {'dtype': dtype, 'shape': [1, size],
                                                'data_offsets': [at, at + size]}
                at += size
            header['__metadata__']['mx.tensor.w%d' % i] = 'F32 1x32'
        (self.folder / 'a.safetensors').write_bytes(safetensors(header, b'\x38' * at))
        done = self.run_mx('tensors', 'a.safetensors')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(done.stdout.count(b'1x32'), 40000)

    def test_many_tensors(self):
        self.memory = 250 << 20
        tensors = b''.join(field(5, field(1, 0) + field(2, 1) + field(8, b'%x' % i))
                           for i in range(1 << 16))
        (self.folder / 'a.onnx').write_bytes(field(1, 8) + field(2, b'x') + field(7, tensors))
        done = self.run_mx('tensors', 'a.onnx')
        if b'without Protobuf' in done.stderr:
            self.skipTest('mx does not read ONNX files here')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(done.stdout.count(b'F32'), 1 << 16)

    def test_distributed(self):
        long = integers((1,) * 10000) + b'q\x07'
        boxes = chunk(b'h\x07', b'h\x07') + b'q\x08' + b'h\x08' * 30000
        distributed(self.folder, dictionary([('w', stored_tensor(long, boxes))]),
                    [place('w', integers([0]))])
        self.refused('.metadata', 'more than 64 axes')
        distributed(self.folder, b'}', [place('first', integers((200,) * 60000) + b'q\x07')] +
                    [place('%d' % i, b'h\x07') for i in range(20000)])
        self.both('.metadata')  # nothing is listed
        # A shard of stride 0, and many tensors of one shard.
        size = integers([1 << 40])
        distributed(self.folder, dictionary([('w', stored_tensor(size, chunk(integers([0]), size)))]),
                    [place('w', integers([0]))], archive(tensor((1 << 40,), (0,))))
        self.assertIn('repeats stored values', self.listed('.metadata'))

    def test_one_file_under_many_names(self):
        elements = 1 << 20
        (self.folder / 'a.data').write_bytes(bytes(4 * elements))
        external = (field(13, field(1, b'location') + field(2, b'a.data')) + field(14, 1))
        tensors = b''.join(
            field(5, field(1, elements) + field(2, 1) + field(8, b'w%d' % i) + external)
            for i in range(10000))
        model = field(1, 8) + field(2, b'x') + field(7, tensors)
        (self.folder / 'a.onnx').write_bytes(model)
        done = self.run_mx('tensors', 'a.onnx')
        if b'without Protobuf' in done.stderr or b'onnx' not in VERSION.lower().encode():
            self.skipTest('mx does not read ONNX files here')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('repeats stored values', ' '.join(done.stdout.decode().split()))

    def test_results_of_as_many_kinds_as_records(self):
        header = {'w': {'dtype': 'F32', 'shape': [1, 32], 'data_offsets': [0, 128]}}
        (self.folder / 'm.safetensors').write_bytes(safetensors(header, bytes(range(64)) * 2))
        done = self.run_mx('analyze', 'm.safetensors', '-r', 'mxfp4', '-q', '--json', 'm.json')
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((self.folder / 'm.json').read_text())
        one, = results['results']
        results['results'] = [{**one, 'tensor': f't{i}', f'member {i}': 1} for i in range(12000)]
        (self.folder / 'many.json').write_text(json.dumps(results))
        done = self.run_mx('report', 'many.json', '-q', '--json', 'o.json')
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_signals_while_headers_are_read(self):
        """A large header takes seconds to read; its outputs are open already."""
        header = b'{"__metadata__":{' + b','.join(b'"%07x":""' % i for i in range(600000)) + b'}}'
        (self.folder / 'a.safetensors').write_bytes(safetensors(header))

        def spent(number):
            process = subprocess.Popen([MX, 'analyze', 'a.safetensors', '--json', 'out.json'],
                                       cwd=self.folder, stderr=subprocess.PIPE)
            files = pathlib.Path(f'/proc/{process.pid}/fd')

            def opened():
                try:
                    return any(os.path.realpath(f).endswith('/a.safetensors') for f in files.iterdir())
                except FileNotFoundError:  # closed meanwhile
                    return False
            while number and not opened():
                time.sleep(0.001)
            if number:
                process.send_signal(number)
            said = process.stderr.read().decode()
            process.stderr.close()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(sorted(os.listdir(self.folder)), ['a.safetensors'])
            return process.returncode, said, used.ru_utime + used.ru_stime

        code, said, whole = spent(None)
        self.assertEqual(code, 3, said)
        for number in (signal.SIGINT, signal.SIGTERM):
            code, said, seconds = spent(number)
            self.assertEqual((code, said), (130, 'mx: interrupted\n'))
            self.assertLess(seconds, whole / 2)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
