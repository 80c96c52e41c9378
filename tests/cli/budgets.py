#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of budgets in docs/security.md: its limits are those of the code, and the worst file that we
know of each kind takes no more memory and processor time than its row promises.
budgets.py MX SOURCE [--long]
With --long the files are as large as the limits permit, and the last column of the table is printed."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

from limits import (MX, RELEASE, archive, chunk, dictionary, distributed, field, integers, place, safetensors,
                    same_hash_text, stored_tensor, tensor)

SOURCE = pathlib.Path(sys.argv[2]).resolve()
LONG = '--long' in sys.argv
SLOWER = 1 if RELEASE else 10
MIB = 1 << 20
UNITS = {'': 1, 'KiB': 1 << 10, 'MiB': MIB, 'GiB': 1 << 30}

# The constant behind each limit of the table.
JSON_LEVELS = 'io/strict_json.cpp json_depth_limit'
AXES = 'io/read_budget.hpp axes_limit'
PICKLE = {'of pickle': 'files/pytorch/pickle_graph.hpp pickle_size_limit',
          'values': 'files/pytorch/pickle_graph.hpp pickle_value_limit',
          'tensors': 'files/pytorch/tensor_paths.hpp named_value_limit',
          'levels': 'files/pytorch/tensor_paths.cpp depth_limit',
          'bytes in a name': 'files/pytorch/tensor_paths.cpp name_length_limit', 'axes': AXES}
LIMITS = {
    'safetensors': {'bytes': 'io/safetensors_header.hpp safetensors_header_limit',
                    'tensors': 'io/safetensors_header.hpp safetensors_tensors_limit', 'axes': AXES,
                    'levels of JSON': JSON_LEVELS},
    'safetensors index': {'bytes': 'io/safetensors_header.hpp safetensors_header_limit',
                          'levels of JSON': JSON_LEVELS},
    'npy': {'': 'io/npy_header.cpp npy_header_limit', 'axes': AXES, 'levels': 'io/npy_header.cpp npy_depth_limit'},
    'npz': {'directories': 'files/zip_directory.cpp ends_limit'},
    'pytorch': PICKLE,
    'pytorch distributed': {**PICKLE, 'of pickle in a shard':
                            'files/pytorch/distributed_reader.cpp shard_pickle_limit',
                            'shards of a tensor': 'io/shards.cpp open_limit',
                            'open shards': 'files/pytorch/distributed_reader.cpp open_files_limit'},
    'hdf5': {'levels': 'files/hdf5_datasets.cpp group_depth_limit',
             'in an attribute': 'files/hdf5_datasets.cpp attribute_limit',
             'in model_config': 'files/hdf5_datasets.cpp keras_config_limit',
             'in a chunk': 'files/hdf5_datasets.hpp hdf5_chunk_limit',
             'in an answer of the child': 'files/isolated_worker.cpp answer_limit'},
    'keras': {'of unpacked weights, or 16 times the file': 'files/keras_reader.cpp always_unpacked'},
    'gguf': {'': 'io/gguf/gguf_header.cpp gguf_header_limit',
             'tensors': 'io/gguf/gguf_header.cpp gguf_tensors_limit',
             'entries': 'io/gguf/gguf_header.cpp entries_limit',
             'of entries kept': 'io/gguf/gguf_header.cpp metadata_limit',
             'axes': 'io/gguf/gguf_header.cpp gguf_axes_limit',
             'levels': 'io/gguf/gguf_header.cpp gguf_depth_limit'},
    'onnx': {'tensors': 'files/onnx/onnx_model.cpp onnx_tensors_limit', 'axes': AXES,
             'bytes in a name': 'files/onnx/onnx_model.cpp name_limit'},
    'tokenizer.json': {'': 'tokens/json_tables.cpp most_json', 'parts': 'tokens/json_tables.cpp most_values',
                       'levels': 'tokens/json_tables.cpp deepest',
                       'tokens': 'tokens/tables.hpp most_tokens'},
    'tokenizer.model': {'': 'tokens/sentencepiece_tables.cpp most_bytes',
                        'tokens': 'tokens/tables.hpp most_tokens'},
    'config.json': {'': 'io/strict_json.hpp largest_config',
                    'entries': 'io/model_config.cpp most_config_entries', 'levels of JSON': JSON_LEVELS},
    'raw': {},
}


def constant(place):
    """The value of an integer constant of the library."""
    file, name = place.split()
    text = (SOURCE / 'libmx' / file).read_text()
    value = re.search(rf'constexpr [\w: ]+\b{name} = ([^;]+);', text)[1]
    value = re.sub(r'std::\w+\{(\d+)\}', r'\1', value).replace("'", '')
    assert re.fullmatch(r'[\d <>()*+-]+', value), f'{place}: {value}'
    return eval(value)


def table():
    """The rows: {kind: (limits, MiB, MiB for each MB, seconds, seconds for each MB)}."""
    page = (SOURCE / 'docs/security.md').read_text()
    rows = page.split('| a file of | its header has at most |')[1].split('\n\n')[0].splitlines()[2:]
    found = {}
    for row in rows:
        kind, limits, memory, seconds, _ = (cell.strip() for cell in row.strip('|').split('|'))
        budgets = [float(number) for cell in (memory, seconds)
                   for number in re.fullmatch(r'([\d.]+) \+ ([\d.]+) M', cell).groups()]
        found[kind] = (limits, *budgets)
    return found


# The worst files. Each function writes one of `share` times the largest size into a folder and returns
# the words of the command that reads it.


def tensors_of_axes(folder, share):
    count, at = int(share * 262144), 0
    shape = '1,' * 63 + '1'
    entries = []
    for i in range(count):
        entries.append('"%x":{"dtype":"U8","shape":[%s],"data_offsets":[%d,%d]}' % (i, shape, at, at + 1))
        at += 1
    (folder / 'm.safetensors').write_bytes(safetensors(('{' + ','.join(entries) + '}').encode(), bytes(at)))
    return f'{count:,} tensors of 64 axes', 'tensors', 'm.safetensors'


def metadata(folder, share):
    count = int(share * 6000000)
    text = '{"__metadata__":{' + ','.join('"%06x":""' % i for i in range(count)) + '}}'
    (folder / 'm.safetensors').write_bytes(safetensors(text.encode()))
    return f'{count:,} entries of metadata', 'tensors', 'm.safetensors'


def colliding_metadata(folder, share):
    keys = same_hash_text(int(17 + (share > 0.5)))
    (folder / 'm.safetensors').write_bytes(safetensors({'__metadata__': {key: '' for key in keys}}))
    return f'{len(keys):,} keys of metadata with one hash', 'tensors', 'm.safetensors'


def index(folder, share):
    names = ['%x' % i for i in range(int(share * 262144))]
    header = ','.join('"%s":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}' % name for name in names)
    (folder / 'a.safetensors').write_bytes(safetensors(('{' + header + '}').encode()))
    weights = ','.join('"%s":"a.safetensors"' % name for name in names)
    (folder / 'm.safetensors.index.json').write_text('{"weight_map":{' + weights + '}}')
    return f'{len(names):,} empty tensors in one shard', 'tensors', 'm.safetensors.index.json'


def npy_levels(folder, share):
    dtype = '[' + "('abcdefgh','<f4')," * int(share * 54000) + ']'
    header = ("{'descr':%s,'fortran_order':False,'shape':(4,),}" % dtype).encode()
    (folder / 'm.npy').write_bytes(b'\x93NUMPY\x02\x00' + struct.pack('<I', len(header)) + header + bytes(64))
    return 'a structured type of 54,000 fields', 'tensors', 'm.npy'


NPY = b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }".ljust(80) + bytes(4)


def zip_entries(folder, share):
    count = int(share * 65535)
    with zipfile.ZipFile(folder / 'm.npz', 'w') as out:
        for i in range(count):
            out.writestr('%x.npy' % i, NPY)
    return f'{count:,} arrays', 'tensors', 'm.npz'


def repeated_tensor(folder, share):
    count = int(share * 90000)
    (folder / 'm.pt').write_bytes(archive(b'](' + tensor() + b'q\x05' + b'h\x05' * count + b'e'))
    return f'a list of one tensor {count:,} times', 'tensors', 'm.pt'


def unpacked_tuples(folder, share):
    count = int(share * 8388508)
    (folder / 'm.pt').write_bytes(archive(b'](' + b'N\x85' * count + b'e0' + dictionary([('w', tensor())])))
    return f'a compressed pickle of {count:,} tuples', 'tensors', 'm.pt'


def distinct_tensors(folder, share):
    count = int(share * 262144)
    with zipfile.ZipFile(folder / 'm.pt', 'w') as out:
        out.writestr('a/data.pkl', b'\x80\x02' + dictionary([('%x' % i, tensor()) for i in range(count)]) + b'.')
        out.writestr('a/data/0', bytes(16))
    return f'{count:,} tensors', 'tensors', 'm.pt'


def distributed_tensors(folder, share):
    count = int(share * 65536)
    names = ['%x' % i for i in range(count)]
    whole = stored_tensor(integers([4]), chunk(integers([0]), integers([4])))
    distributed(folder, dictionary([(name, whole) for name in names]),
                [place(name, integers([0])) for name in names])
    return f'{count:,} tensors of one shard', 'tensors', '.metadata'


def many_arrays(folder, share):
    count, at = int(share * 100000), 0
    header = {}
    for i in range(count):
        header['%x' % i] = {'dtype': 'F32', 'shape': [1, 1], 'data_offsets': [at, at + 4]}
        at += 4
    (folder / 'm.safetensors').write_bytes(safetensors(header, bytes(at)))
    subprocess.run([MX, 'quantize', 'm.safetensors', '--all-tensors', '-r', 'e4m3', '-q', '-o', 'm.h5'],
                   cwd=folder, check=True)
    (folder / 'm.safetensors').unlink()
    return count


def hdf5(folder, share):
    return f'{many_arrays(folder, share):,} datasets', 'tensors', 'm.h5'


def keras(folder, share):
    count = many_arrays(folder, share)
    with zipfile.ZipFile(folder / 'm.keras', 'w', zipfile.ZIP_DEFLATED) as out:
        out.writestr('config.json', '{}')
        out.writestr('metadata.json', '{}')
        out.write(folder / 'm.h5', 'model.weights.h5')
    (folder / 'm.h5').unlink()
    return f'{count:,} datasets, compressed', 'tensors', 'm.keras'


def gguf_text(text):
    return struct.pack('<Q', len(text)) + text.encode()


def gguf_tensors(folder, share):
    count = int(share * 262144)
    infos = b''.join(gguf_text('%x' % i) + struct.pack('<IQIQ', 1, 0, 0, 0) for i in range(count))
    (folder / 'm.gguf').write_bytes(b'GGUF' + struct.pack('<IQQ', 3, count, 0) + infos + bytes(64))
    return f'{count:,} tensors without values', 'tensors', 'm.gguf'


def gguf_array(folder, share):
    count = int(share * 33000000)
    entry = gguf_text('a') + struct.pack('<IIQ', 9, 8, count)
    (folder / 'm.gguf').write_bytes(b'GGUF' + struct.pack('<IQQ', 3, 0, 1) + entry)
    os.truncate(folder / 'm.gguf', (folder / 'm.gguf').stat().st_size + 8 * count + 64)
    return f'an array of {count:,} empty texts', 'tensors', 'm.gguf'


def onnx(folder, share):
    count = int(share * 262144)
    tensors = b''.join(field(5, field(1, 0) + field(2, 1) + field(8, b'%x' % i)) for i in range(count))
    (folder / 'm.onnx').write_bytes(field(1, 8) + field(2, b'x') + field(7, tensors))
    return f'{count:,} tensors without values', 'tensors', 'm.onnx'


def eval_words(name):
    return 'eval', str(SOURCE / 'datasets/vectors/eval/llama'), '--text', 'text', '--tokenizer', name


def tokenizer_json(folder, share):
    count = int(share * 4190000)
    (folder / 'text').write_text('text')
    (folder / 'tokenizer.json').write_text('{"model":{"type":"BPE","vocab":{},"merges":[]},"x":[%s]}' %
                                           ','.join(['{}'] * count))
    return f'{count:,} empty objects', *eval_words('tokenizer.json')


def tokenizer_model(folder, share):
    count = int(share * 1000000)
    (folder / 'text').write_text('text')
    pieces = b''.join(field(1, field(1, b'%x' % i) + field(3, 1)) for i in range(count))
    (folder / 'tokenizer.model').write_bytes(pieces + field(2, field(3, 2)))
    return f'{count:,} pieces', *eval_words('tokenizer.model')


def config(folder, entries):
    safe = safetensors({'w': {'dtype': 'U8', 'shape': [1], 'data_offsets': [0, 1]}}, bytes(1))
    (folder / 'm.safetensors').write_bytes(safe)
    (folder / 'config.json').write_text(entries)


def config_names(folder, share):
    length = int(share * (15 << 20))
    config(folder, '{"%s":{%s}}' % ('x' * length, ','.join('"%x":1' % i for i in range(65535))))
    return f'65,535 entries below a name of {length:,} bytes', 'lint', '.'


def config_objects(folder, share):
    count = int(share * 2500000)
    config(folder, '{"%s":[%s]}' % ('x' * int(share * (8 << 20)), ','.join(['{}'] * count)))
    return f'{count:,} empty objects below a long name', 'lint', '.'


def raw(folder, share):
    size = int(share * (1 << 40))
    (folder / 'm.bin').touch()
    os.truncate(folder / 'm.bin', size)
    return 'one array', 'tensors', 'm.bin', '--shape', str(size), '--dtype', 'U8'


WORST = {'safetensors': (tensors_of_axes, metadata, colliding_metadata), 'safetensors index': (index,),
         'npy': (npy_levels,), 'npz': (zip_entries,),
         'pytorch': (repeated_tensor, unpacked_tuples, distinct_tensors),
         'pytorch distributed': (distributed_tensors,), 'hdf5': (hdf5,), 'keras': (keras,),
         'gguf': (gguf_tensors, gguf_array), 'onnx': (onnx,), 'tokenizer.json': (tokenizer_json,),
         'tokenizer.model': (tokenizer_model,),
         'config.json': (config_names, config_objects), 'raw': (raw,)}


def made(make, folder, share):
    """What `make` returns. It works in a process of its own: what this one takes when mx starts counts as
    memory of mx."""
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            os.write(write, json.dumps(make(folder, share)).encode())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write)
    with open(read) as answer:
        words = json.loads(answer.read())
    os.wait()
    return words


def cost(folder, words):
    """The exit code, MiB and processor seconds of mx and of its child, and what it said."""
    run = subprocess.Popen([MX, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = run.stderr.read().decode(errors='replace')
    run.stderr.close()
    _, status, used = os.wait4(run.pid, 0)
    run.returncode = os.waitstatus_to_exitcode(status)
    return run.returncode, used.ru_maxrss / 1024, used.ru_utime + used.ru_stime, said


class Budgets(unittest.TestCase):
    def test_the_rows_are_those_of_this_test(self):
        self.assertEqual(list(table()), list(LIMITS))
        self.assertEqual(list(WORST), list(LIMITS))

    def test_limits_are_those_of_the_code(self):
        for kind, (limits, *_) in table().items():
            stated = {}
            for phrase in (p for p in limits.split('; ') if p):
                number, unit, what = re.fullmatch(r'([\d,]+) ?([KMG]iB)? ?(.*)', phrase).groups('')
                stated[what] = int(number.replace(',', '')) * UNITS[unit]
            self.assertEqual(stated, {what: constant(at) for what, at in LIMITS[kind].items()}, kind)

    def test_worst_files(self):
        for kind, (_, floor, slope, seconds, pace) in table().items():
            for make in WORST[kind]:
                with self.subTest(make.__name__), tempfile.TemporaryDirectory(prefix='mx-budgets.') as scratch:
                    folder = pathlib.Path(scratch)
                    what, *words = made(make, folder, 1 if LONG else 1 / 16)
                    size = sum(file.stat().st_size for file in folder.iterdir())
                    code, mib, spent, said = cost(folder, words)
                    if 'without Protobuf' in said or 'without HDF5' in said or 'without libzip' in said:
                        continue
                    self.assertIn(code, (0, 1, 3), said[:2000])  # 1: mx lint has a finding
                    if code == 3:
                        self.assertEqual(said.count('\n'), 1, said[:2000])
                    if LONG:
                        print(f'| {kind} | {what}: {size:,} bytes, {mib:.0f} MiB, {spent:.1f} s |', flush=True)
                    if RELEASE:  # sanitizers take more
                        self.assertLess(mib, floor + slope * size / 1e6, what)
                    self.assertLess(spent, SLOWER * (seconds + pace * size / 1e6), what)

    def test_reading_tensors_takes_64_mib_a_thread(self):
        with tempfile.TemporaryDirectory(prefix='mx-budgets.') as scratch:
            folder = pathlib.Path(scratch)
            for name, rows in (('small', 1), ('large', 1 << (13 if LONG else 10))):
                (folder / name).touch()
                os.truncate(folder / name, rows * (1 << 18))
            for threads in ('1', '2'):
                words = ('-r', 'mxfp4', '-q', '--threads', threads, '--dtype', 'F32', '--shape')
                codes, mib, _, said = zip(*(cost(folder, ('analyze', name, *words, f'{rows}x65536'))
                                            for name, rows in (('small', 1), ('large', 1 << (13 if LONG else 10)))))
                self.assertEqual(codes, (0, 0), said)
                if RELEASE:
                    self.assertLess(mib[1] - mib[0], 64 * int(threads))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
