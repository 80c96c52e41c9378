#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of every layout, clean and with one planted fault each: mx lint finds the fault under
the right rule and tensor, and nothing in the clean ones. lint.py MX SOURCE"""
import copy
import json
import pathlib
import random
import resource
import struct
import subprocess
import sys
import tempfile
import unittest

MX = pathlib.Path(sys.argv[1]).resolve()
BYTES = {'F32': 4, 'F16': 2, 'BF16': 2, 'U8': 1, 'I8': 1, 'I32': 4, 'I64': 8, 'F8_E4M3': 1, 'F8_E8M0': 1}
RNG = random.Random(7)


def elements(shape):
    n = 1
    for extent in shape:
        n *= extent
    return n


class Tensor:
    def __init__(self, dtype, shape, data=None):
        self.dtype, self.shape = dtype, list(shape)
        self.data = RNG.randbytes(elements(shape) * BYTES[dtype]) if data is None else bytes(data)
        assert len(self.data) == elements(shape) * BYTES[dtype]


def floats(shape, *values):
    n = elements(shape)
    return Tensor('F32', shape, struct.pack(f'<{n}f', *(values * n)[:n]))


def bf16(shape):
    return Tensor('BF16', shape, b''.join(struct.pack('<f', RNG.gauss(0, 0.1))[2:] for _ in range(elements(shape))))


def fp8(shape, least=0, most=0x7e):
    return Tensor('F8_E4M3', shape, bytes(RNG.randint(least, most) for _ in range(elements(shape))))


def safetensors(tensors):
    header, at = {}, 0
    for name, t in tensors.items():
        header[name] = {'dtype': t.dtype, 'shape': t.shape, 'data_offsets': [at, at + len(t.data)]}
        at += len(t.data)
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 8)
    return struct.pack('<Q', len(text)) + text + b''.join(t.data for t in tensors.values())


PROJECTIONS = {'self_attn.q_proj': (64, 128), 'self_attn.k_proj': (64, 128), 'self_attn.v_proj': (64, 128),
               'self_attn.o_proj': (128, 64), 'mlp.gate_proj': (256, 128), 'mlp.up_proj': (256, 128),
               'mlp.down_proj': (128, 256)}
LAYERS = 2
CONFIG = {'model_type': 'llama', 'architectures': ['LlamaForCausalLM'], 'tie_word_embeddings': False}


class Model:
    """Tensors by name, shards, the index and config.json."""

    def __init__(self, quantization):
        self.tensors = {'model.embed_tokens.weight': bf16((64, 128)), 'lm_head.weight': bf16((64, 128)),
                        'model.norm.weight': bf16((128,))}
        self.config = copy.deepcopy(CONFIG)
        if quantization:
            self.config['quantization_config'] = quantization
        self.second = set()  # names of the second shard
        self.index = None    # weight_map; None: that of the tensors
        self.total = None
        self.extra = {}      # tensors that are in the second shard, too

    def write(self, folder):
        shards = {'model-00001-of-00002.safetensors': {n: t for n, t in self.tensors.items() if n not in self.second},
                  'model-00002-of-00002.safetensors': {n: t for n, t in self.tensors.items() if n in self.second}}
        shards['model-00002-of-00002.safetensors'].update(self.extra)
        weights = {n: file for file, of in shards.items() for n in of} if self.index is None else self.index
        total = sum(len(t.data) for of in shards.values() for t in of.values())
        for file, of in shards.items():
            (folder / file).write_bytes(safetensors(of))
        (folder / 'model.safetensors.index.json').write_text(
            json.dumps({'metadata': {'total_size': self.total or total}, 'weight_map': weights}))
        if self.config:
            (folder / 'config.json').write_text(json.dumps(self.config))
        return folder


def matrices(model):
    for layer in range(LAYERS):
        for name, shape in PROJECTIONS.items():
            full = f'model.layers.{layer}.{name}'
            if layer == 1:
                model.second.add(full)
            yield full, shape
        model.tensors[f'model.layers.{layer}.input_layernorm.weight'] = bf16((128,))


def put(model, module, of):
    for ending, tensor in of.items():
        model.tensors[module + ending] = tensor
        if module in model.second:
            model.second.add(module + ending)


def partner_scale(module):
    """One for q, k and v, one for gate and up."""
    layer, name = module.rsplit('.', 1)
    group = {'q_proj': 1, 'k_proj': 1, 'v_proj': 1, 'o_proj': 2, 'gate_proj': 3, 'up_proj': 3, 'down_proj': 4}[name]
    return (1 + group + 8 * int(layer.split('.')[2])) * 1e-4


def modelopt_nvfp4():
    m = Model({'quant_method': 'modelopt', 'quant_algo': 'NVFP4', 'ignore': ['lm_head'],
               'config_groups': {'group_0': {'targets': ['Linear'], 'weights': {'num_bits': 4, 'group_size': 16},
                                             'input_activations': {'num_bits': 4, 'group_size': 16}}}})
    for module, (rows, cols) in matrices(m):
        scale = partner_scale(module)
        put(m, module, {'.weight': Tensor('U8', (rows, cols // 2)), '.weight_scale': fp8((rows, cols // 16), 0x30),
                        '.weight_scale_2': floats((), scale), '.input_scale': floats((), 3 * scale)})
    return m


def modelopt_fp8():
    m = Model({'quant_method': 'modelopt', 'quant_algo': 'FP8', 'ignore': ['lm_head']})
    for module, shape in matrices(m):
        scale = partner_scale(module)
        put(m, module, {'.weight': fp8(shape), '.weight_scale': floats((), scale),
                        '.input_scale': floats((), 5 * scale)})
    return m


def ct_nvfp4():
    m = Model({'quant_method': 'compressed-tensors', 'format': 'nvfp4-pack-quantized', 'ignore': ['lm_head'],
               'config_groups': {'group_0': {'targets': ['Linear'], 'weights': {
                   'num_bits': 4, 'group_size': 16, 'type': 'float', 'strategy': 'tensor_group'}}}})
    for module, (rows, cols) in matrices(m):
        put(m, module, {'.weight_packed': Tensor('U8', (rows, cols // 2)),
                        '.weight_scale': fp8((rows, cols // 16), 0x30),
                        '.weight_global_scale': floats((1,), 1 / partner_scale(module)),
                        '.input_global_scale': floats((1,), 0.2 / partner_scale(module))})
    return m


def deepseek():
    m = Model({'quant_method': 'fp8', 'fmt': 'e4m3', 'weight_block_size': [128, 128],
               'activation_scheme': 'dynamic', 'modules_to_not_convert': ['lm_head']})
    for module, (rows, cols) in matrices(m):
        tiles = (-(-rows // 128), -(-cols // 128))
        n = elements(tiles)
        put(m, module, {'.weight': fp8((rows, cols)),
                        '.weight_scale_inv': floats(tiles, *(partner_scale(module) * (1 + k / 8) for k in range(n)))})
    return m


def gpt_oss():
    m = Model({'quant_method': 'mxfp4', 'modules_to_not_convert': ['model.layers.*.self_attn', 'lm_head']})
    for layer in range(LAYERS):
        for name, (rows, cols) in {'gate_up_proj': (64, 128), 'down_proj': (128, 32)}.items():
            stem = f'model.layers.{layer}.mlp.experts.{name}'
            m.tensors[stem + '_blocks'] = Tensor('U8', (4, rows, cols // 32, 16))
            m.tensors[stem + '_scales'] = Tensor('U8', (4, rows, cols // 32),
                                                 bytes(RNG.randint(110, 125) for _ in range(4 * rows * cols // 32)))
            m.tensors[stem + '_bias'] = bf16((4, rows))
        m.tensors[f'model.layers.{layer}.self_attn.q_proj.weight'] = bf16((64, 128))
    return m


def half(shape):
    return Tensor('F16', shape, b''.join(struct.pack('<e', RNG.uniform(0.001, 0.01)) for _ in range(elements(shape))))


def gptq():
    m = Model({'quant_method': 'gptq', 'bits': 4, 'group_size': 32, 'desc_act': False, 'sym': True})
    for module, (rows, cols) in matrices(m):
        put(m, module, {'.qweight': Tensor('I32', (cols // 8, rows)),
                        '.qzeros': Tensor('I32', (cols // 32, rows // 8), b'\x77' * (cols // 32 * rows // 2)),
                        '.scales': half((cols // 32, rows)),
                        '.g_idx': Tensor('I32', (cols,), struct.pack(f'<{cols}i', *(k // 32 for k in range(cols))))})
    return m


def awq():
    m = Model({'quant_method': 'awq', 'bits': 4, 'group_size': 32, 'version': 'gemm', 'zero_point': True})
    for module, (rows, cols) in matrices(m):
        put(m, module, {'.qweight': Tensor('I32', (cols, rows // 8)), '.qzeros': Tensor('I32', (cols // 32, rows // 8)),
                        '.scales': half((cols // 32, rows))})
    return m


def bitsandbytes():
    m = Model({'quant_method': 'bitsandbytes', 'load_in_4bit': True, 'llm_int8_skip_modules': ['lm_head']})
    for module, (rows, cols) in matrices(m):
        n = rows * cols
        state = json.dumps({'quant_type': 'nf4', 'blocksize': 64, 'dtype': 'bfloat16', 'shape': [rows, cols]}).encode()
        put(m, module, {'.weight': Tensor('U8', (n // 2, 1)),
                        '.weight.absmax': floats((n // 64,), *(0.01 * (1 + k % 17) for k in range(n // 64))),
                        '.weight.quant_map': floats((16,), *(k / 8 - 1 for k in range(16))),
                        '.weight.quant_state.bitsandbytes__nf4': Tensor('U8', (len(state),), state)})
    return m


def plain():
    m = Model(None)
    for module, shape in matrices(m):
        put(m, module, {'.weight': bf16(shape)})
    return m


LAYOUTS = [modelopt_nvfp4, modelopt_fp8, ct_nvfp4, deepseek, gpt_oss, gptq, awq, bitsandbytes, plain]
Q, K, DOWN = (f'model.layers.1.{name}' for name in ('self_attn.q_proj', 'self_attn.k_proj', 'mlp.down_proj'))
EXPERTS = 'model.layers.1.mlp.experts.down_proj'


def delete(name):
    return lambda m: m.tensors.pop(name)


def set_float(name, value, at=0):
    def change(m):
        t = m.tensors[name]
        data = bytearray(t.data)
        kind = {'F32': '<f', 'F16': '<e'}[t.dtype]
        struct.pack_into(kind, data, at * BYTES[t.dtype], value)
        t.data = bytes(data)
    return change


def set_byte(name, value, at=0):
    def change(m):
        data = bytearray(m.tensors[name].data)
        data[at] = value
        m.tensors[name].data = bytes(data)
    return change


def scale_float(name, by):
    def change(m):
        t = m.tensors[name]
        values = struct.unpack(f'<{len(t.data) // 4}f', t.data)
        t.data = struct.pack(f'<{len(values)}f', *(by(v) for v in values))
    return change


def configure(**changes):
    return lambda m: m.config['quantization_config'].update(changes)


def group(model, **changes):
    model.config['quantization_config']['config_groups']['group_0']['weights'].update(changes)


def replace(name, tensor):
    return lambda m: m.tensors.update({name: tensor})


def all_of(ending, value):
    def change(m):
        for name, t in m.tensors.items():
            if name.endswith(ending):
                t.data = struct.pack('<f', value)
    return change


def cut_scales(name):
    def change(m):
        t = m.tensors[name]
        t.shape[0] -= 1
        t.data = t.data[:elements(t.shape) * BYTES[t.dtype]]
    return change


def zero_with_codes(m):
    set_byte(DOWN + '.weight_scale', 0)(m)
    set_byte(DOWN + '.weight', 0x33)(m)


def plain_again(name):
    def change(m):
        for part in [n for n in m.tensors if n.startswith(name + '.')]:
            m.tensors.pop(part)
        m.tensors[name + '.weight'] = bf16((64, 128))
    return change


def tie(m):
    m.config['tie_word_embeddings'] = True


def move_in_index(m):
    every = {n: 'model-00001-of-00002.safetensors' for n in m.tensors if n not in m.second}
    every.update({n: 'model-00002-of-00002.safetensors' for n in m.tensors if n in m.second})
    every[DOWN + '.weight'] = 'model-00001-of-00002.safetensors'
    m.index = every


def omit_from_index(m):
    move_in_index(m)
    del m.index[DOWN + '.weight']


# (layout, rule, tensor that is named, change, options): one fault each.
FAULTS = [
    (modelopt_nvfp4, 'missing-scale', DOWN + '.weight', delete(DOWN + '.weight_scale'), []),
    (modelopt_nvfp4, 'missing-scale', DOWN + '.weight', delete(DOWN + '.weight_scale_2'), []),
    (modelopt_nvfp4, 'missing-scale', DOWN + '.weight', delete(DOWN + '.input_scale'), []),
    (modelopt_fp8, 'missing-scale', DOWN + '.weight', delete(DOWN + '.weight_scale'), []),
    (ct_nvfp4, 'missing-scale', DOWN + '.weight_packed', delete(DOWN + '.weight_scale'), []),
    (ct_nvfp4, 'missing-scale', DOWN + '.weight_packed', delete(DOWN + '.weight_global_scale'), []),
    (deepseek, 'missing-scale', DOWN + '.weight', delete(DOWN + '.weight_scale_inv'), []),
    (gpt_oss, 'missing-scale', EXPERTS + '_blocks', delete(EXPERTS + '_scales'), []),
    (gptq, 'missing-scale', DOWN + '.qweight', delete(DOWN + '.scales'), []),
    (awq, 'missing-scale', DOWN + '.qweight', delete(DOWN + '.scales'), []),
    (bitsandbytes, 'missing-scale', DOWN + '.weight', delete(DOWN + '.weight.absmax'), []),
    (modelopt_nvfp4, 'orphan-scale', DOWN + '.weight_scale', delete(DOWN + '.weight'), []),
    (modelopt_fp8, 'orphan-scale', DOWN + '.weight_scale', replace(DOWN + '.weight', bf16((128, 256))), []),
    (ct_nvfp4, 'orphan-scale', DOWN + '.weight_scale', delete(DOWN + '.weight_packed'), []),
    (deepseek, 'orphan-scale', DOWN + '.weight_scale_inv', delete(DOWN + '.weight'), []),
    (gpt_oss, 'orphan-scale', EXPERTS + '_scales', delete(EXPERTS + '_blocks'), []),
    (gptq, 'orphan-scale', DOWN + '.scales', delete(DOWN + '.qweight'), []),
    (modelopt_nvfp4, 'scale-value', DOWN + '.weight_scale', set_byte(DOWN + '.weight_scale', 0x7f, 3), []),
    (modelopt_nvfp4, 'scale-value', DOWN + '.weight_scale', set_byte(DOWN + '.weight_scale', 0xb0, 3), []),
    (modelopt_nvfp4, 'scale-value', DOWN + '.weight_scale', zero_with_codes, []),
    (modelopt_nvfp4, 'scale-value', DOWN + '.weight_scale_2', set_float(DOWN + '.weight_scale_2', float('inf')), []),
    (modelopt_nvfp4, 'scale-value', DOWN + '.weight_scale_2', set_float(DOWN + '.weight_scale_2', 1e-40), []),
    (modelopt_nvfp4, 'scale-value', DOWN + '.weight_scale_2',
     scale_float(DOWN + '.weight_scale_2', lambda v: 1 / v), []),
    (modelopt_fp8, 'scale-value', DOWN + '.weight_scale', set_float(DOWN + '.weight_scale', 0), []),
    (modelopt_fp8, 'scale-value', DOWN + '.weight_scale', scale_float(DOWN + '.weight_scale', lambda v: 1 / v), []),
    (ct_nvfp4, 'scale-value', DOWN + '.weight_global_scale',
     scale_float(DOWN + '.weight_global_scale', lambda v: 1 / v), []),
    (deepseek, 'scale-value', DOWN + '.weight_scale_inv', set_float(DOWN + '.weight_scale_inv', float('nan')), []),
    (deepseek, 'scale-value', DOWN + '.weight_scale_inv',
     scale_float(DOWN + '.weight_scale_inv', lambda v: 1 / v), []),
    (gpt_oss, 'scale-value', EXPERTS + '_scales', set_byte(EXPERTS + '_scales', 255, 9), []),
    (gptq, 'scale-value', DOWN + '.scales', set_float(DOWN + '.scales', float('inf'), 5), []),
    (awq, 'scale-value', DOWN + '.scales', set_float(DOWN + '.scales', float('nan'), 5), []),
    (bitsandbytes, 'scale-value', DOWN + '.weight.absmax', set_float(DOWN + '.weight.absmax', float('nan'), 5), []),
    (modelopt_nvfp4, 'scale-shape', DOWN + '.weight_scale', cut_scales(DOWN + '.weight_scale'), []),
    (ct_nvfp4, 'scale-shape', DOWN + '.weight_scale', cut_scales(DOWN + '.weight_scale'), []),
    (gpt_oss, 'scale-shape', EXPERTS + '_scales', cut_scales(EXPERTS + '_scales'), []),
    (modelopt_nvfp4, 'fused-scales', K + '.weight_scale_2', scale_float(K + '.weight_scale_2', lambda v: 3 * v), []),
    (ct_nvfp4, 'fused-scales', K + '.weight_global_scale',
     scale_float(K + '.weight_global_scale', lambda v: 3 * v), []),
    (modelopt_fp8, 'fused-scales', K + '.weight_scale', scale_float(K + '.weight_scale', lambda v: 3 * v), []),
    (modelopt_nvfp4, 'fused-scales', K + '.input_scale', scale_float(K + '.input_scale', lambda v: 3 * v), []),
    (modelopt_nvfp4, 'config', DOWN + '.weight', configure(ignore=['lm_head', DOWN]), []),
    (modelopt_nvfp4, 'config', DOWN + '.weight', configure(ignore=['lm_head', '*1.mlp.down_proj']), []),
    (ct_nvfp4, 'config', DOWN + '.weight_packed', configure(ignore=['lm_head', 're:.*1.mlp.down_proj$']), []),
    (ct_nvfp4, 'config', Q + '.weight', plain_again(Q), []),
    (deepseek, 'config', Q + '.weight', plain_again(Q), []),
    (modelopt_nvfp4, 'config', 'model.layers.7.mlp.down_proj',
     configure(ignore=['lm_head', 'model.layers.7.mlp.down_proj']), []),
    (modelopt_nvfp4, 'config', None, lambda m: m.config.pop('quantization_config'), []),
    (modelopt_nvfp4, 'config', None, configure(quant_algo='FP8'), []),
    (modelopt_nvfp4, 'config', None, lambda m: group(m, group_size=32), []),
    (ct_nvfp4, 'config', None, lambda m: group(m, num_bits=8), []),
    (deepseek, 'config', None, configure(weight_block_size=[64, 64]), []),
    (gptq, 'config', None, configure(bits=8), []),
    (gptq, 'config', None, configure(group_size=64), []),
    (awq, 'config', None, configure(group_size=128), []),
    (plain, 'config', None, lambda m: m.config.update(quantization_config={'quant_method': 'fp8'}), []),
    (plain, 'index', DOWN + '.weight', move_in_index, []),
    (plain, 'index', DOWN + '.weight', omit_from_index, []),
    (plain, 'index', None, lambda m: setattr(m, 'total', 12345), []),
    (plain, 'index', Q + '.weight', lambda m: m.tensors.update({}) or m.second.discard(Q + '.weight') or
     m.extra.update({Q + '.weight': m.tensors[Q + '.weight']}), []),
    (modelopt_fp8, 'default-scale', None, all_of('.input_scale', 1.0), []),
    (modelopt_fp8, 'default-scale', DOWN + '.input_scale', set_float(DOWN + '.input_scale', 1), []),
    (ct_nvfp4, 'default-scale', None, all_of('.weight_global_scale', 1.0), []),
    (plain, 'tied', 'lm_head.weight', tie, []),
    (plain, 'value', DOWN + '.weight', lambda m: [set_byte(DOWN + '.weight', v, k)(m) for k, v in
                                                  enumerate((0xc0, 0x7f))], ['--values']),
    (plain, 'value', DOWN + '.weight', lambda m: m.tensors.update(
        {DOWN + '.weight': Tensor('BF16', (128, 256), bytes(65536))}), ['--values']),
    (modelopt_fp8, 'value', DOWN + '.weight', set_byte(DOWN + '.weight', 0x7f, 100), ['--values']),
]


def lint(path, *options):
    # Of processor time: far more than any of these takes, and far less than a list of patterns, or a search of all
    # tensors for each, would.
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    done = subprocess.run([MX, 'lint', path, '--json', '-', '-q', *options], capture_output=True, text=True,
                          preexec_fn=limit)
    if not done.stdout:
        raise AssertionError(done.stderr or f'exit code {done.returncode}')
    return done.returncode, json.loads(done.stdout)


def e4m3(code):
    mantissa = code & 7
    size = mantissa / 512 if code & 0x78 == 0 else (1 + mantissa / 8) * 2.0 ** ((code >> 3 & 15) - 7)
    return -size if code & 0x80 else size


E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def decoded(model):
    """The model that modelopt_nvfp4() or deepseek() stores, with noise of a tenth."""
    original = Model(None)
    for name, codes in model.tensors.items():
        if not name.endswith('.weight') or codes.dtype not in ('U8', 'F8_E4M3'):
            continue
        rows, cols = codes.shape
        module = name[:-len('.weight')]
        if codes.dtype == 'U8':
            cols *= 2
            outer, = struct.unpack('<f', model.tensors[module + '.weight_scale_2'].data)
            scales = model.tensors[module + '.weight_scale'].data
            values = [E2M1[codes.data[i // 2] >> i % 2 * 4 & 15] * e4m3(scales[i // 16]) * outer
                      for i in range(rows * cols)]
        else:
            scales = model.tensors[module + '.weight_scale_inv']
            numbers = struct.unpack(f'<{elements(scales.shape)}f', scales.data)
            values = [e4m3(codes.data[i]) * numbers[i // cols // 128 * scales.shape[1] + i % cols // 128]
                      for i in range(rows * cols)]
        data = struct.pack(f'<{len(values)}f', *(v * RNG.uniform(0.9, 1.1) for v in values))
        original.tensors[name] = Tensor('F32', (rows, cols), data)
    return original


def bytes_of(name, change):
    def of(m):
        m.tensors[name].data = bytes(change(m.tensors[name].data))
    return of


# (layout, tensor, words of the message, change), read with the original that the layout decodes to.
CONVENTIONS = [
    (modelopt_nvfp4, DOWN + '.weight', 'nibbles exchanged',
     bytes_of(DOWN + '.weight', lambda data: (b >> 4 | (b & 15) << 4 for b in data))),
    (modelopt_nvfp4, DOWN + '.weight_scale_2', 'the tensor scale as a divisor',
     scale_float(DOWN + '.weight_scale_2', lambda v: 1 / v)),
    (modelopt_nvfp4, DOWN + '.weight_scale', 'the 128x4 order',
     bytes_of(DOWN + '.weight_scale', lambda data: (
         data[(p % 16 // 4 * 32 + p % 512 // 16) * 16 + p // 512 * 4 + p % 4] for p in range(len(data))))),
    (modelopt_nvfp4, DOWN + '.weight_scale_2', 'a constant factor',
     scale_float(DOWN + '.weight_scale_2', lambda v: 2 * v)),
    (deepseek, DOWN + '.weight_scale_inv', 'the scales as divisors',
     scale_float(DOWN + '.weight_scale_inv', lambda v: 1 / v)),
    (deepseek, DOWN + '.weight', 'any reading',
     bytes_of(DOWN + '.weight', lambda data: data[::-1])),
]


class Lint(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.scratch.name))

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_clean(self):
        for layout in LAYOUTS:
            with self.subTest(layout.__name__):
                folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                code, said = lint(layout().write(folder), '--values')
                self.assertEqual([code, said['results']], [0, []])

    def test_faults(self):
        for layout, rule, tensor, change, options in FAULTS:
            with self.subTest(f'{layout.__name__}: {rule} {tensor}'):
                model = layout()
                change(model)
                folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                code, said = lint(model.write(folder), *options)
                found = [(f['rule'], f['tensor']) for f in said['results']]
                self.assertTrue(any(r == rule and tensor in (None, t) for r, t in found), found)
                errors = sum(f['severity'] == 'error' for f in said['results'])
                self.assertEqual(code, int(errors > 0))
                self.assertEqual(sum(r['errors'] for r in said['rules']), errors)
                for f in said['results']:
                    self.assertTrue(f['message'] and f['effect'] and f['repair'], f)

    def test_conventions(self):
        for layout in (modelopt_nvfp4, deepseek):
            model = layout()
            original = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            decoded(model).write(original)
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            self.assertEqual(lint(model.write(folder), '--original', original)[1]['results'], [])
            for of, tensor, words, change in CONVENTIONS:
                if of != layout:
                    continue
                with self.subTest(f'{layout.__name__}: {words}'):
                    faulty = copy.deepcopy(model)
                    change(faulty)
                    folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                    said = lint(faulty.write(folder), '--original', original, '--rules', 'convention')[1]
                    self.assertEqual([f['tensor'] for f in said['results']], [tensor])
                    self.assertIn(words, said['results'][0]['message'])

    def test_no_partner(self):
        folder = modelopt_fp8().write(self.folder)
        other = self.folder / 'other'
        other.mkdir()
        model = Model(None)
        model.tensors = {'other.weight': bf16((4, 4))}
        done = subprocess.run([MX, 'lint', folder, '--original', model.write(other)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn('holds no tensor by the name of one of the checkpoint', done.stderr)

    def test_empty_folder(self):
        done = subprocess.run([MX, 'lint', self.folder], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f'{self.folder}: holds', done.stderr)

    def test_ignored(self):
        model = modelopt_nvfp4()
        delete(DOWN + '.weight_scale_2')(model)
        folder = model.write(self.folder)
        self.assertEqual(lint(folder)[0], 1)
        self.assertEqual(lint(folder, '--ignore', 'missing-scale')[0], 0)
        self.assertEqual(lint(folder, '--ignore', 'missing-scale:*.down_proj.weight')[0], 0)
        self.assertEqual(lint(folder, '--ignore', 'missing-scale:*.up_proj.weight')[0], 1)
        done = subprocess.run([MX, 'lint', folder, '--ignore', 'scale'], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown rule 'scale'", done.stderr)

    def test_missing_shard(self):
        folder = modelopt_fp8().write(self.folder)
        (folder / 'model-00002-of-00002.safetensors').unlink()
        code, said = lint(folder)
        self.assertEqual(code, 1)
        self.assertEqual([f['rule'] for f in said['results']], ['index'])
        self.assertIn('model-00002-of-00002', said['results'][0]['message'] + said['results'][0]['found'])

    def test_for_ci(self):
        model = modelopt_nvfp4()
        scale_float(K + '.weight_scale_2', lambda v: 3 * v)(model)
        folder = model.write(self.folder)
        junit = self.folder / 'lint.xml'
        done = subprocess.run([MX, 'lint', folder, '--junit', junit, '--annotations', 'github', '-q'],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        text = junit.read_text()
        self.assertIn('tests="9" failures="1"', text)
        self.assertIn('name="fused-scales">', text)
        self.assertTrue(done.stderr.startswith('::error file='), done.stderr)

    def test_many_tensors(self):
        """Names alone: the time grows with their number, not with its square."""
        model = Model(modelopt_fp8().config['quantization_config'])
        for layer in range(10_000):
            for name in ('q_proj', 'k_proj', 'v_proj'):
                module = f'model.layers.{layer}.self_attn.{name}'
                model.tensors[module + '.weight'] = fp8((1, 16))
                model.tensors[module + '.weight_scale'] = floats((), 0.001)
        code, said = lint(model.write(self.folder))
        self.assertEqual((code, said['results']), (0, []))

    def test_long_lists(self):
        """Lists of names are looked up; patterns that would take minutes are not all tried."""
        model = Model(modelopt_fp8().config['quantization_config'])
        for layer in range(10_000):
            module = f'model.layers.{layer}.self_attn.o_proj'
            model.tensors[module + '.weight'] = fp8((1, 16))
            model.tensors[module + '.weight_scale'] = floats((), 0.001)
        configure(ignore=['lm_head'] + [f're:(.+)+({k}|[YZ])$' for k in range(20_000)])(model)
        self.assertEqual(lint(model.write(self.folder))[0], 0)
        configure(ignore=[f'model.layers.{k}.self_attn.o_proj' for k in range(9_000, 29_000)])(model)
        code, said = lint(model.write(self.folder))
        self.assertEqual(code, 1)
        self.assertIn('excludes it', said['results'][0]['message'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
