#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`mx quantize FOLDER --layout gguf`: small models of every architecture that it takes, read back by a
parser of its own and by `mx eval`; what GGUF cannot express leaves no file. gguf_folder.py MX SOURCE"""
import json
import math
import pathlib
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

MX, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
MODELS = SOURCE / 'datasets/vectors/eval'
WIDTHS = {0: '<B', 1: '<b', 2: '<H', 3: '<h', 4: '<I', 5: '<i', 6: '<f', 7: '<?', 10: '<Q', 11: '<q', 12: '<d'}
F32, Q8_0, BF16, MXFP4 = 0, 8, 30, 39


def read_gguf(path):
    """Metadata, and per tensor (type, shape, bytes to the end of the file)."""
    data, at = memoryview(path.read_bytes()), 0

    def take(form):
        nonlocal at
        value, = struct.unpack_from(form, data, at)
        at += struct.calcsize(form)
        return value

    def text():
        nonlocal at
        size = take('<Q')
        at += size
        return bytes(data[at - size:at]).decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            inner, count = take('<I'), take('<Q')
            return [value(inner) for _ in range(count)]
        return take(WIDTHS[kind])

    assert data[:4] == b'GGUF'
    at = 4
    version, tensors, entries = take('<I'), take('<Q'), take('<Q')
    assert version == 3
    metadata = {}
    for _ in range(entries):
        key = text()
        assert key not in metadata
        metadata[key] = value(take('<I'))
    places = {}
    for _ in range(tensors):
        name = text()
        shape = [take('<Q') for _ in range(take('<I'))][::-1]
        places[name] = take('<I'), shape, take('<Q')
    start = (at + 31) // 32 * 32
    return metadata, {name: (kind, shape, data[start + offset:]) for name, (kind, shape, offset) in places.items()}


def read_safetensors(path):
    data = path.read_bytes()
    size = 8 + int.from_bytes(data[:8], 'little')
    return {name: (t['dtype'], t['shape'], data[size + t['data_offsets'][0]:size + t['data_offsets'][1]])
            for name, t in json.loads(data[8:size]).items() if name != '__metadata__'}


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with path.open('wb') as out:
        out.write(struct.pack('<Q', len(text)) + text)
        for _, _, data in tensors.values():
            out.write(data)


def tokenizer(pattern=None):
    """Byte-level BPE of 96 tokens for lower-case text."""
    words = ['<unk>', '<s>', '</s>', '\u0120', '.'] + [chr(c) for c in range(ord('a'), ord('z') + 1)]
    merges = [('t', 'h'), ('th', 'e'), ('\u0120', 'a'), ('\u0120', 'the'), ('i', 'n')]
    words += [a + b for a, b in merges]
    steps = [{'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': pattern is None}]
    if pattern:
        steps.insert(0, {'type': 'Split', 'pattern': {'Regex': pattern}, 'behavior': 'Isolated', 'invert': False})
    added = [{'id': i, 'content': w, 'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False,
              'special': i < 3} for i, w in [*enumerate(words[:3]), (len(words), '<tool>')]]
    begin = {'type': 'TemplateProcessing', 'single': [{'SpecialToken': {'id': '<s>'}}, {'Sequence': {'id': 'A'}}],
             'special_tokens': {'<s>': {'ids': [1]}}}
    return {'version': '1.0', 'added_tokens': added, 'normalizer': None,
            'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': steps}, 'post_processor': begin, 'decoder': None,
            'model': {'type': 'BPE', 'vocab': {w: i for i, w in enumerate(words)}, 'merges': merges}}, words


def narrowed(data):
    """BF16 of F32 numbers, by their upper halves."""
    return b''.join(data[i + 2:i + 4] for i in range(0, len(data), 4))


class Folders(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        self.out = self.dir / 'out.gguf'

    def mx(self, *words, code=0):
        done = subprocess.run([str(MX), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def folder(self, kind, **more):
        folder = self.dir / kind
        shutil.copytree(MODELS / kind, folder, ignore=lambda *_: ['reference.safetensors', 'gradients.safetensors'])
        tensors = read_safetensors(folder / 'model.safetensors')
        if tensors['model.embed_tokens.weight'][0] == 'F32':  # matrices in BF16, as models have them
            write_safetensors(folder / 'model.safetensors', {
                n: ('BF16', s, narrowed(d)) for n, (_, s, d) in tensors.items()})
        config = json.loads((folder / 'config.json').read_text())
        config.pop('sliding_window', None)
        config.update(more)
        (folder / 'config.json').write_text(json.dumps({k: v for k, v in config.items() if v != 'absent'}))
        (folder / 'tokenizer.json').write_text(json.dumps(tokenizer()[0]))
        (folder / 'tokenizer_config.json').write_text(json.dumps(
            {'bos_token': '<s>', 'eos_token': {'content': '</s>'}, 'chat_template': '{{ 1 }}'}))
        return folder

    def nll(self, model):
        text = self.dir / 'text'
        text.write_text('the tin hat is in a thin bin. and the inn <tool> is thin')
        result = json.loads(self.mx('eval', model, '--text', text, '--per-token', '--json', '-'))
        return result['per_token']['nll_base']

    def test_models(self):
        for kind in ('llama', 'llama3', 'mistral', 'qwen2', 'qwen3'):
            with self.subTest(kind):
                folder = self.folder(kind)
                self.mx('quantize', folder, '-t', '*.up_proj.weight', '-r', 'mxfp4', '--layout', 'gguf', '-o',
                        self.out, '-q')
                metadata, tensors = read_gguf(self.out)
                self.check_metadata(kind, folder, metadata)
                self.check_tensors(kind, read_safetensors(folder / 'model.safetensors'), tensors)
                # The same model in names and rows of transformers, with the quantized values.
                self.mx('quantize', folder, '-t', '*.up_proj.weight', '-r', 'mxfp4', '--keep-rest', '-o',
                        self.dir / 'values.safetensors', '-q')
                shutil.move(self.dir / 'values.safetensors', folder / 'model.safetensors')
                mine, theirs = self.nll(self.out), self.nll(folder)
                self.assertGreater(len(mine), 20)
                self.assertLess(max(abs(a - b) for a, b in zip(mine, theirs)), 1e-5)
                self.mx('lint', self.out)
                self.out.unlink()

    def check_metadata(self, kind, folder, metadata):
        config = json.loads((folder / 'config.json').read_text())
        arch = {'llama3': 'llama', 'mistral': 'llama'}.get(kind, kind)
        size = config.get('head_dim', config['hidden_size'] // config['num_attention_heads'])
        wanted = {
            'general.architecture': arch, 'general.type': 'model', 'general.name': kind,
            'general.quantization_version': 2, 'general.file_type': 38, f'{arch}.block_count': 2,
            f'{arch}.context_length': 64, f'{arch}.embedding_length': 32, f'{arch}.feed_forward_length': 48,
            f'{arch}.attention.head_count': 4, f'{arch}.attention.head_count_kv': 2,
            f'{arch}.attention.key_length': size, f'{arch}.attention.value_length': size,
            f'{arch}.attention.layer_norm_rms_epsilon': struct.unpack('<f', struct.pack('<f', config['rms_norm_eps']))[0],
            f'{arch}.rope.dimension_count': size, f'{arch}.rope.freq_base': 10000.0, f'{arch}.vocab_size': 96,
            'tokenizer.ggml.model': 'gpt2', 'tokenizer.ggml.pre': 'gpt-2', 'tokenizer.ggml.bos_token_id': 1,
            'tokenizer.ggml.eos_token_id': 2, 'tokenizer.ggml.padding_token_id': 0,
            'tokenizer.ggml.add_bos_token': True, 'tokenizer.chat_template': '{{ 1 }}'}
        words = tokenizer()[1] + ['<tool>']
        wanted['tokenizer.ggml.tokens'] = words + [f'[PAD{i}]' for i in range(len(words), 96)]
        wanted['tokenizer.ggml.token_type'] = [3] * 3 + [1] * (len(words) - 4) + [4] + [5] * (96 - len(words))
        wanted['tokenizer.ggml.merges'] = ['t h', 'th e', '\u0120 a', '\u0120 the', 'i n']
        self.assertEqual(metadata, wanted)

    def check_tensors(self, kind, stored, tensors):
        names = {'token_embd.weight': 'model.embed_tokens.weight', 'output_norm.weight': 'model.norm.weight'}
        if kind != 'llama':  # the head of that one is the embedding
            names['output.weight'] = 'lm_head.weight'
        parts = {'attn_q': 'self_attn.q_proj', 'attn_k': 'self_attn.k_proj', 'attn_v': 'self_attn.v_proj',
                 'attn_output': 'self_attn.o_proj', 'ffn_gate': 'mlp.gate_proj', 'ffn_up': 'mlp.up_proj',
                 'ffn_down': 'mlp.down_proj', 'attn_norm': 'input_layernorm',
                 'ffn_norm': 'post_attention_layernorm', 'attn_q_norm': 'self_attn.q_norm',
                 'attn_k_norm': 'self_attn.k_norm'}
        for name in tensors:
            if name.startswith('blk.'):
                _, layer, what, end = name.split('.')
                names[name] = f'model.layers.{layer}.{parts[what]}.{end}'
        rope = tensors.pop('rope_freqs.weight', None)
        self.assertEqual(rope is not None, kind == 'llama3')
        if rope:
            self.check_rope(rope)
        self.assertEqual(sorted(names), sorted(tensors))
        self.assertEqual(sorted(names.values()), sorted(stored))
        for name, (type_id, shape, data) in tensors.items():
            _, wanted_shape, wanted = stored[names[name]]
            self.assertEqual(shape, wanted_shape, name)
            if '.ffn_up.' in name:
                self.assertEqual(type_id, MXFP4)
                continue
            heads = {'attn_q.': 4, 'attn_k.': 2}.get(name.split('.', 2)[-1].split('.')[0] + '.', 0)
            row = len(wanted) // shape[0]
            rows = [wanted[i:i + row] for i in range(0, len(wanted), row)]
            if heads and kind in ('llama', 'llama3', 'mistral'):
                half = shape[0] // heads // 2
                rows = [rows[h * 2 * half + j * half + i] for h in range(heads) for i in range(half) for j in range(2)]
            wanted = b''.join(rows)
            self.assertEqual(type_id, BF16 if len(shape) == 2 else F32, name)
            if type_id == F32:
                wanted = b''.join(b'\0\0' + wanted[i:i + 2] for i in range(0, len(wanted), 2))
            self.assertEqual(data[:len(wanted)], wanted, name)

    def check_rope(self, rope):
        type_id, shape, data = rope
        self.assertEqual((type_id, shape), (F32, [4]))
        for i, factor in enumerate(struct.unpack_from('<4f', data)):
            wave = 2 * math.pi * 10000.0 ** (2 * i / 8)
            if wave < 16 / 4:
                wanted = 1.0
            elif wave > 16:
                wanted = 8.0
            else:
                smooth = (16 / wave - 1) / (4 - 1)
                wanted = 1 / ((1 - smooth) / 8 + smooth)
            self.assertAlmostEqual(factor, wanted, delta=1e-6 * wanted)

    def test_linear_rope_and_biases(self):
        folder = self.folder('llama', attention_bias=True,
                             rope_parameters={'rope_type': 'linear', 'factor': 4.0, 'rope_theta': 10000.0})
        tensors = read_safetensors(folder / 'model.safetensors')
        for i in range(2):
            for what, count in (('q', 32), ('k', 16), ('v', 16), ('o', 32)):
                values = struct.pack(f'<{count}f', *((k * 7 % 11 - 5) / 8 for k in range(count)))
                tensors[f'model.layers.{i}.self_attn.{what}_proj.bias'] = 'F32', [count], values
        write_safetensors(folder / 'model.safetensors', tensors)
        self.mx('quantize', folder, '-t', '*.up_proj.weight', '-r', 'q8_0', '--layout', 'gguf', '-o', self.out, '-q')
        metadata, written = read_gguf(self.out)
        self.assertEqual(len(self.nll(self.out)), len(self.nll(folder)))
        self.assertLess(max(abs(a - b) for a, b in zip(self.nll(self.out), self.nll(folder))), 0.05)
        self.assertEqual(metadata['llama.rope.scaling.type'], 'linear')
        self.assertEqual(metadata['llama.rope.scaling.factor'], 4.0)
        self.assertEqual(written['blk.0.ffn_up.weight'][0], Q8_0)
        bias = struct.unpack('<16f', tensors['model.layers.1.self_attn.k_proj.bias'][2])
        half = [bias[h * 8 + j * 4 + i] for h in range(2) for i in range(4) for j in range(2)]
        self.assertEqual(list(struct.unpack_from('<16f', written['blk.1.attn_k.bias'][2])), half)

    def test_plan(self):
        """q8_0 is a recipe in plans, and FP8 under one scale in those of another layout."""
        folder = self.folder('llama')
        plan = self.dir / 'plan.json'

        def write(recipe):
            plan.write_text(json.dumps({'schema': 'mx.plan/1', 'results': [
                {'tensor': f'model.layers.{i}.mlp.up_proj.weight', 'recipe': recipe} for i in range(2)] + [
                {'tensor': f'model.layers.{i}.mlp.gate_proj.weight', 'recipe': recipe} for i in range(2)]}))
        write('q8_0')
        self.mx('quantize', folder, '--plan', plan, '--layout', 'gguf', '-o', self.out, '-q')
        kinds = {name: t[0] for name, t in read_gguf(self.out)[1].items()}
        self.assertEqual([n for n, kind in sorted(kinds.items()) if kind == Q8_0],
                         [f'blk.{i}.ffn_{what}.weight' for i in range(2) for what in ('gate', 'up')])
        self.mx('quantize', folder, '--plan', plan, '-o', self.dir / 'a.safetensors', '-q', code=3)
        write('e4m3:scale=tensor')
        self.mx('quantize', folder, '--plan', plan, '--layout', 'compressed-tensors', '-o', self.dir / 'fp8', '-q')
        shards = list((self.dir / 'fp8').glob('*.safetensors'))
        fp8 = [n for shard in shards for n, t in read_safetensors(shard).items() if t[0] == 'F8_E4M3']
        self.assertEqual(len(fp8), 4)

    def refused(self, folder, words, code=3, more=()):
        error = self.mx('quantize', folder, '-r', 'mxfp4', '--layout', 'gguf', '-o', self.out, *more, code=code)
        self.assertEqual(error.count('\n'), 1, error)
        self.assertIn(words, error)
        self.assertEqual([p.name for p in self.dir.glob('*out.gguf*')], [])

    def test_refusals(self):
        self.refused(self.folder('mistral', sliding_window=9), 'no window of 9 positions')
        self.refused(self.folder('olmo2'), 'llama, mistral, qwen2, qwen3, not olmo2', code=2)
        folder = self.folder('qwen3', attention_bias=True)
        self.refused(folder, 'no such biases')
        folder = self.folder('llama')
        (folder / 'tokenizer.json').write_text(json.dumps(tokenizer('[a-z]+')[0]))
        self.refused(folder, 'a pattern that is not known')
        (folder / 'tokenizer.json').unlink()
        self.refused(folder, 'has no tokenizer.json or tokenizer.model')
        document, _ = tokenizer()
        document['model']['vocab'].update({'<tool>': 36, **{'z' * i: i for i in range(37, 97)}})
        (folder / 'tokenizer.json').write_text(json.dumps(document))
        self.refused(folder, 'its tokenizer has 97 tokens, the model 96')
        (folder / 'tokenizer.json').write_text(json.dumps(tokenizer()[0]))
        tensors = read_safetensors(folder / 'model.safetensors')
        write_safetensors(folder / 'model.safetensors', {**tensors, 'model.extra.weight': tensors['model.norm.weight']})
        self.refused(folder, 'is not a tensor of architecture llama')
        lost = dict(tensors)
        lost.pop('model.layers.1.self_attn.k_proj.weight')
        write_safetensors(folder / 'model.safetensors', lost)
        self.refused(folder, "'model.layers.1.self_attn.k_proj.weight': --layout gguf: is missing")
        write_safetensors(folder / 'model.safetensors', tensors)
        self.refused(folder, 'the configuration says', more=('--transpose', '*.down_proj.weight'))
        (folder / 'config.json').unlink()
        self.refused(folder, 'takes a GGUF file, or a folder with config.json', code=2)

    def test_many_tensors(self):
        """70,202 tensors, in bounded memory."""
        layers = 7800
        folder = self.folder('llama', num_hidden_layers=layers)
        stored = read_safetensors(folder / 'model.safetensors')
        tensors = {n: t for n, t in stored.items() if '.layers.' not in n}
        for i in range(layers):
            for name, t in stored.items():
                if '.layers.0.' in name:
                    tensors[name.replace('.0.', f'.{i}.')] = t
        write_safetensors(folder / 'model.safetensors', tensors)
        self.mx('quantize', folder, '-r', 'mxfp4', '--layout', 'gguf', '-o', self.out, '-q')
        self.assertEqual(len(read_gguf(self.out)[1]), 2 + 9 * layers)
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        self.assertLess(most, 600, 'MiB')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
