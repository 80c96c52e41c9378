#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Twelve small quantized checkpoints, one for each common layout: quantized_files.py FOLDER

Each is a model of one layer, under the names that its writer gives, with a norm and an embedding that
are not quantized. Nothing but the standard library is needed, and the bytes are always the same.
"""
import json
import math
import os
import random
import struct
import sys

BITS = {"F32": 32, "BF16": 16, "F16": 16, "F8_E4M3": 8, "F8_E8M0": 8, "U8": 8, "I8": 8, "I32": 32, "I64": 64}
HIDDEN, MIDDLE, EXPERTS = 128, 256, 2


def product(shape):
    return math.prod(shape)


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def codes(self, count):
        return self.random.getrandbits(8 * count).to_bytes(count, "little")

    def fp4(self, *shape):
        """Two codes to a byte, roughly as many of each as a quantizer makes of normal values."""
        count = product(shape)
        weights = [18, 16, 14, 12, 10, 8, 4, 2] * 2
        codes = self.random.choices(range(16), weights, k=2 * count)
        return "U8", list(shape), bytes(a | b << 4 for a, b in zip(codes[::2], codes[1::2]))

    def e4m3(self, *shape):
        """FP8 weights; never NaN."""
        return "F8_E4M3", list(shape), bytes(c if c & 0x7f != 0x7f else c - 1
                                              for c in self.codes(product(shape)))

    def e4m3_scales(self, *shape):
        return "F8_E4M3", list(shape), bytes(0x60 + self.random.getrandbits(4) for _ in range(product(shape)))

    def e8m0(self, *shape, dtype="U8"):
        return dtype, list(shape), bytes(118 + self.random.getrandbits(2) for _ in range(product(shape)))

    def f32(self, *shape, low=1e-4, high=3e-4):
        return "F32", list(shape), b"".join(struct.pack("<f", self.random.uniform(low, high))
                                            for _ in range(product(shape)))

    def powers(self, *shape):
        return "F32", list(shape), b"".join(struct.pack("<f", 2.0 ** self.random.randint(-9, -6))
                                            for _ in range(product(shape)))

    def f16(self, *shape):
        return "F16", list(shape), b"".join(struct.pack("<e", self.random.uniform(.002, .004))
                                            for _ in range(product(shape)))

    def bf16(self, *shape, scale=.02, mean=0.0):
        return "BF16", list(shape), b"".join(
            struct.pack("<f", self.random.gauss(mean, scale))[2:] for _ in range(product(shape)))

    def words(self, *shape):
        return "I32", list(shape), self.codes(4 * product(shape))


def write(path, tensors):
    head, blob = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        assert len(data) * 8 == product(shape) * BITS[dtype], name
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + blob)


def one(value):
    return "F32", [], struct.pack("<f", value)


def numbers(*values):
    return "I64", [len(values)], struct.pack("<%dq" % len(values), *values)


LAYER = "model.layers.0."
LINEAR = {LAYER + "self_attn.q_proj": (HIDDEN, HIDDEN), LAYER + "self_attn.o_proj": (HIDDEN, HIDDEN),
          LAYER + "mlp.up_proj": (MIDDLE, HIDDEN), LAYER + "mlp.down_proj": (HIDDEN, MIDDLE)}


def linear(arrays):
    """A model whose linear layers have these arrays: name, rows, columns -> {name: array}."""
    def make(m):
        tensors = {"model.embed_tokens.weight": m.bf16(64, HIDDEN),
                   LAYER + "input_layernorm.weight": m.bf16(HIDDEN, mean=1)}
        for name, (rows, cols) in LINEAR.items():
            tensors.update(arrays(m, name, rows, cols))
        return tensors
    return make


def experts(arrays):
    """The same with stacks of experts: gate_up_proj and down_proj."""
    def make(m):
        tensors = {LAYER + "input_layernorm.weight": m.bf16(HIDDEN, mean=1),
                   LAYER + "mlp.router.weight": m.bf16(EXPERTS, HIDDEN)}
        at = LAYER + "mlp.experts."
        tensors.update(arrays(m, at + "gate_up_proj", 2 * MIDDLE, HIDDEN))
        tensors.update(arrays(m, at + "down_proj", HIDDEN, MIDDLE))
        return tensors
    return make


def gptq(m, n, rows, cols):
    groups = cols // 32
    return {n + ".qweight": m.words(cols // 8, rows), n + ".qzeros": m.words(groups, rows // 8),
            n + ".scales": m.f16(groups, rows),
            n + ".g_idx": ("I32", [cols], struct.pack("<%di" % cols, *(i // 32 for i in range(cols))))}


def fused(m, n, rows, cols):
    # As modelopt stores them: [experts, in, out], packed along the inputs.
    return {n: m.fp4(EXPERTS, cols // 2, rows),
            n + "_weight_scale": m.e4m3_scales(EXPERTS, cols // 16, rows),
            n + "_weight_scale_2": one(3e-5), n + "_input_scale": one(.01)}


FILES = {
    "nvfp4-modelopt": linear(lambda m, n, rows, cols: {
        n + ".weight": m.fp4(rows, cols // 2), n + ".weight_scale": m.e4m3_scales(rows, cols // 16),
        n + ".weight_scale_2": one(3e-5), n + ".input_scale": one(.01)}),
    "nvfp4-awq": linear(lambda m, n, rows, cols: {
        n + ".weight": m.fp4(rows, cols // 2), n + ".weight_scale": m.e4m3_scales(rows, cols // 16),
        n + ".weight_scale_2": one(3e-5), n + ".pre_quant_scale": m.bf16(cols, scale=.2, mean=1)}),
    "nvfp4-compressed-tensors": linear(lambda m, n, rows, cols: {
        n + ".weight_packed": m.fp4(rows, cols // 2),
        n + ".weight_scale": m.e4m3_scales(rows, cols // 16),
        n + ".weight_global_scale": ("F32", [1], struct.pack("<f", 12000))}),
    "nvfp4-experts": experts(fused),
    "mxfp4-gpt-oss": experts(lambda m, n, rows, cols: {
        n + "_blocks": ("U8", [EXPERTS, rows, cols // 32, 16], m.fp4(EXPERTS * rows, cols // 2)[2]),
        n + "_scales": m.e8m0(EXPERTS, rows, cols // 32), n + "_bias": m.bf16(EXPERTS, rows)}),
    "mxfp4-numbers": linear(lambda m, n, rows, cols: {
        n + ".weight": m.fp4(rows, cols // 2), n + ".weight_scale": m.powers(rows, cols // 32)}),
    "mxfp8": linear(lambda m, n, rows, cols: {
        n + ".weight": m.e4m3(rows, cols),
        n + ".weight_scale": m.e8m0(rows, cols // 32, dtype="F8_E8M0")}),
    "fp8-tiles": linear(lambda m, n, rows, cols: {
        n + ".weight": m.e4m3(rows, cols),
        n + ".weight_scale_inv": m.f32((rows + 63) // 64, (cols + 63) // 64)}),
    "fp8-rows": linear(lambda m, n, rows, cols: {
        n + ".weight": m.e4m3(rows, cols), n + ".weight_scale": m.f32(rows, 1),
        n + ".input_scale": one(.02)}),
    "int8-rows": linear(lambda m, n, rows, cols: {
        n + ".weight": ("I8", [rows, cols], m.codes(rows * cols)), n + ".weight_scale": m.f32(rows, 1)}),
    "int4-packed": linear(lambda m, n, rows, cols: {
        n + ".weight_packed": m.words(rows, cols // 8), n + ".weight_scale": m.f16(rows, cols // 32),
        n + ".weight_shape": numbers(rows, cols)}),
    "int4-gptq": linear(gptq),
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.makedirs(sys.argv[1], exist_ok=True)
    for seed, (name, make) in enumerate(FILES.items()):
        folder = os.path.join(sys.argv[1], name)
        os.makedirs(folder, exist_ok=True)
        write(os.path.join(folder, "model.safetensors"), make(Maker(seed)))
        if name == "fp8-tiles":
            config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [64, 64]}}
            with open(os.path.join(folder, "config.json"), "w") as file:
                json.dump(config, file)


if __name__ == "__main__":
    main()
