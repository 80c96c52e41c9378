# SPDX-License-Identifier: Apache-2.0
"""mx lint on checkpoints with planted faults: each is found by its rule at its tensor, and the
sound ones give no finding. Usage: lint_test.py MX"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy")
    sys.exit(77)

MX = os.path.abspath(sys.argv[1])
HIDDEN, INNER, LAYERS = 128, 256, 3
PROJECTIONS = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (HIDDEN, HIDDEN),
    "self_attn.v_proj": (HIDDEN, HIDDEN),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (INNER, HIDDEN),
    "mlp.up_proj": (INNER, HIDDEN),
    "mlp.down_proj": (HIDDEN, INNER),
}
SIZES = {"F32": 4, "BF16": 2, "F16": 2, "I32": 4, "I64": 8, "U8": 1, "F8_E4M3": 1, "F8_E8M0": 1}


def bf16(x):
    return (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def f32(*x):
    return "F32", np.array(x, np.float32)


def write_safetensors(path, tensors):
    header, at, parts = {}, 0, []
    for name, (dtype, array) in tensors.items():
        data = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


class Checkpoint:
    """Tensors, config.json, and the number of shards."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.tensors = {}
        self.config = {"model_type": "llama", "tie_word_embeddings": False}
        self.shards = 1
        self.edit_index = None
        self.extra = {}
        for name in ("model.embed_tokens", "lm_head"):
            self.plain(name, (64, HIDDEN))
        for layer in range(LAYERS):
            self.tensors[f"model.layers.{layer}.input_layernorm.weight"] = (
                "BF16", bf16(np.ones(HIDDEN)))

    def plain(self, name, shape):
        self.tensors[name + ".weight"] = "BF16", bf16(self.random.normal(0, 0.02, shape))

    def bytes(self, *shape):
        return self.random.integers(0, 256, shape, dtype=np.uint8)

    def fp8(self, *shape):
        """Codes that are no NaN."""
        codes = self.bytes(*shape)
        codes[(codes & 0x7F) == 0x7F] = 0x38
        return "F8_E4M3", codes

    def e4m3_scales(self, *shape):
        """Positive, of 2^-3 to 448."""
        return "F8_E4M3", self.random.integers(0x20, 0x7F, shape, dtype=np.uint8)

    def projections(self):
        for layer in range(LAYERS):
            for name, shape in PROJECTIONS.items():
                group = "qkv" if name.split(".")[1][0] in "qkv" and "attn" in name else (
                    "gateup" if "gate" in name or "up_" in name else name)
                yield f"model.layers.{layer}.{name}", shape, (layer * 8 + len(group))

    def write(self, folder):
        os.makedirs(folder)
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(self.config, file)
        if self.shards == 1:
            write_safetensors(os.path.join(folder, "model.safetensors"), self.tensors)
        else:
            names = list(self.tensors)
            index = {"metadata": {"total_size": sum(a.nbytes for _, a in self.tensors.values())},
                     "weight_map": {}}
            for s in range(self.shards):
                shard = f"model-{s + 1:05}-of-{self.shards:05}.safetensors"
                part = {n: self.tensors[n] for n in names[s::self.shards]}
                index["weight_map"].update(dict.fromkeys(part, shard))
                part.update(self.extra.get(s, {}))
                write_safetensors(os.path.join(folder, shard), part)
            if self.edit_index:
                self.edit_index(index)
            with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
                json.dump(index, file)


def modelopt_nvfp4():
    c = Checkpoint(1)
    for name, (rows, cols), key in c.projections():
        c.tensors[name + ".weight"] = "U8", c.bytes(rows, cols // 2)
        c.tensors[name + ".weight_scale"] = c.e4m3_scales(rows, cols // 16)
        c.tensors[name + ".weight_scale_2"] = f32(1e-4 * (1 + key / 32))
        c.tensors[name + ".input_scale"] = f32(2e-3 * (1 + key / 64))
    c.config["quantization_config"] = {
        "quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"],
        "config_groups": {"group_0": {"targets": ["Linear"],
                                      "weights": {"num_bits": 4, "group_size": 16}}}}
    return c


def modelopt_fp8():
    c = Checkpoint(2)
    for name, shape, key in c.projections():
        c.tensors[name + ".weight"] = c.fp8(*shape)
        c.tensors[name + ".weight_scale"] = f32(3e-4 * (1 + key / 32))
        c.tensors[name + ".input_scale"] = f32(2e-2 * (1 + key / 32))
        if name.endswith(("k_proj", "v_proj")):
            c.tensors[f"{name}.{name[-6]}_scale"] = f32(1.0)  # of the cache
    c.config["quantization_config"] = {"quant_method": "modelopt", "quant_algo": "FP8",
                                       "exclude_modules": ["lm_head*"]}
    return c


def compressed_nvfp4():
    c = Checkpoint(3)
    for name, (rows, cols), key in c.projections():
        c.tensors[name + ".weight_packed"] = "U8", c.bytes(rows, cols // 2)
        c.tensors[name + ".weight_scale"] = c.e4m3_scales(rows, cols // 16)
        c.tensors[name + ".weight_global_scale"] = f32(9000 + 100 * key)
        c.tensors[name + ".input_global_scale"] = f32(300 + key)
    for layer in range(LAYERS):
        c.plain(f"model.layers.{layer}.mlp.router", (8, HIDDEN))
    c.config["quantization_config"] = {
        "quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized",
        "ignore": ["lm_head", "re:.*router$"],
        "config_groups": {"group_0": {"targets": ["Linear"],
                                      "weights": {"num_bits": 4, "group_size": 16}}}}
    return c


def deepseek_fp8():
    c = Checkpoint(4)
    for name, (rows, cols), _ in c.projections():
        c.tensors[name + ".weight"] = c.fp8(rows, cols)
        c.tensors[name + ".weight_scale_inv"] = (
            "F32", c.random.uniform(1e-4, 4e-4, (-(-rows // 128), -(-cols // 128)))
            .astype(np.float32))
    c.config["quantization_config"] = {"quant_method": "fp8", "weight_block_size": [128, 128],
                                       "activation_scheme": "dynamic"}
    return c


def gpt_oss():
    c = Checkpoint(5)
    for layer in range(LAYERS):
        for name, rows in (("gate_up_proj", 2 * HIDDEN), ("down_proj", HIDDEN)):
            stem = f"model.layers.{layer}.mlp.experts.{name}"
            c.tensors[stem + "_blocks"] = "U8", c.bytes(4, rows, HIDDEN // 32, 16)
            c.tensors[stem + "_scales"] = "U8", c.random.integers(
                110, 126, (4, rows, HIDDEN // 32), dtype=np.uint8)
            c.tensors[stem + "_bias"] = "BF16", bf16(np.zeros((4, rows)))
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            c.plain(f"model.layers.{layer}.self_attn.{name}", (HIDDEN, HIDDEN))
        c.plain(f"model.layers.{layer}.mlp.router", (4, HIDDEN))
    c.config["quantization_config"] = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                   "model.embed_tokens", "lm_head"]}
    return c


def words(method):
    c = Checkpoint(6)
    for name, (rows, cols), _ in c.projections():
        groups = cols // 64
        gptq = method == "gptq"
        packed = (cols // 8, rows) if gptq else (cols, rows // 8)
        c.tensors[name + ".qweight"] = "I32", c.random.integers(
            -2**31, 2**31, packed).astype(np.int32)
        c.tensors[name + ".qzeros"] = "I32", np.full((groups, rows // 8), 0x77777777, np.int32)
        c.tensors[name + ".scales"] = "F16", c.random.uniform(
            0.001, 0.01, (groups, rows)).astype(np.float16)
        if gptq:
            c.tensors[name + ".g_idx"] = "I32", (np.arange(cols) // 64).astype(np.int32)
    c.config["quantization_config"] = {"quant_method": method, "bits": 4, "group_size": 64}
    return c


def bitsandbytes():
    c = Checkpoint(7)
    state = json.dumps({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16",
                        "shape": [HIDDEN, HIDDEN]}).encode()
    for name, (rows, cols), _ in c.projections():
        text = state.replace(b"[128, 128]", f"[{rows}, {cols}]".encode())
        c.tensors[name + ".weight"] = "U8", c.bytes(rows * cols // 2, 1)
        c.tensors[name + ".weight.absmax"] = "F32", c.random.uniform(
            0.01, 0.1, rows * cols // 64).astype(np.float32)
        c.tensors[name + ".weight.quant_map"] = "F32", np.linspace(-1, 1, 16, dtype=np.float32)
        c.tensors[name + ".weight.quant_state.bitsandbytes__nf4"] = (
            "U8", np.frombuffer(text, np.uint8))
    c.config["quantization_config"] = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    return c


def dropped(name):
    def fault(c):
        del c.tensors[name]
    return fault


def changed(name, change):
    def fault(c):
        dtype, array = c.tensors[name]
        array = array.copy()
        result = change(array)
        c.tensors[name] = dtype, array if result is None else result
    return fault


def put(index, value):
    def change(array):
        array[index] = value
    return change


def configured(change):
    return lambda c: change(c.config["quantization_config"])


def plain_again(name, shape):
    def fault(c):
        for key in [k for k in c.tensors if k.startswith(name + ".")]:
            del c.tensors[key]
        c.plain(name, shape)
    return fault


def in_shards(edit=None, extra=None):
    def fault(c):
        c.shards = 3
        c.edit_index = edit
        c.extra = extra(c) if extra else {}
    return fault


def tied(differ):
    def fault(c):
        c.config["tie_word_embeddings"] = True
        dtype, array = c.tensors["model.embed_tokens.weight"]
        array = array.copy()
        array[0, 0] ^= differ
        c.tensors["lm_head.weight"] = dtype, array
    return fault


L = "model.layers.1."
Q, GATE, DOWN = L + "self_attn.q_proj", L + "mlp.gate_proj", L + "mlp.down_proj"
E = L + "mlp.experts.down_proj"
SQUARE = (HIDDEN, HIDDEN)
SOUND = {"modelopt-nvfp4": modelopt_nvfp4, "modelopt-fp8": modelopt_fp8,
         "compressed-nvfp4": compressed_nvfp4, "deepseek-fp8": deepseek_fp8, "gpt-oss": gpt_oss,
         "gptq": lambda: words("gptq"), "awq": lambda: words("awq"), "bitsandbytes": bitsandbytes}


def eight_bits(override):
    """down_proj of a layer in 8 bits and groups of 128, as an entry for that module says."""
    def change(c):
        c.tensors[DOWN + ".qweight"] = "I32", c.random.integers(
            -2**31, 2**31, (INNER // 4, HIDDEN)).astype(np.int32)
        c.tensors[DOWN + ".qzeros"] = "I32", np.full((INNER // 128, HIDDEN // 4), 0x7f7f7f7f, np.int32)
        c.tensors[DOWN + ".scales"] = "F16", c.random.uniform(
            0.001, 0.01, (INNER // 128, HIDDEN)).astype(np.float16)
        c.tensors[DOWN + ".g_idx"] = "I32", (np.arange(INNER) // 128).astype(np.int32)
        c.config["quantization_config"].update(override)
    return change


def in_text_config(change):
    def moved(c):
        change(c)
        c.config["text_config"] = {"quantization_config": c.config.pop("quantization_config")}
    return moved


SOUND_VARIANTS = [
    ("gptq", eight_bits({"dynamic": {r"+:.*layers\.1\.mlp\.down_proj.*": {"bits": 8, "group_size": 128}}})),
    ("gptq", eight_bits({"extra_config": {DOWN: {"bits": 8, "group_size": 128}}})),
    ("gptq", in_text_config(lambda c: None)),
    ("deepseek-fp8", lambda c: c.config.update(time_step_limit=[0.0, float("inf")])),
    ("compressed-nvfp4", in_shards()),
    ("modelopt-nvfp4", tied(0)),
    ("modelopt-nvfp4", lambda c: (plain_again(Q, SQUARE)(c), configured(
        lambda q: q["ignore"].append(Q))(c), plain_again(L + "self_attn.k_proj", SQUARE)(c),
        configured(lambda q: q["ignore"].append("*layers.1.self_attn.k_proj"))(c),
        plain_again(L + "self_attn.v_proj", SQUARE)(c), configured(
            lambda q: q["ignore"].append("re:.*layers\\.1\\.self_attn\\.v_.*"))(c))),
]
FAULTS = [
    ("modelopt-nvfp4", "missing-scale", Q + ".weight", dropped(Q + ".weight_scale")),
    ("modelopt-nvfp4", "missing-scale", DOWN + ".weight", dropped(DOWN + ".weight_scale_2")),
    ("modelopt-nvfp4", "missing-scale", Q + ".weight", dropped(Q + ".input_scale")),
    ("modelopt-fp8", "missing-scale", GATE + ".weight", dropped(GATE + ".weight_scale")),
    ("compressed-nvfp4", "missing-scale", Q + ".weight_packed",
     dropped(Q + ".weight_global_scale")),
    ("deepseek-fp8", "missing-scale", DOWN + ".weight", dropped(DOWN + ".weight_scale_inv")),
    ("gpt-oss", "missing-scale", E + "_blocks", dropped(E + "_scales")),
    ("gptq", "missing-scale", Q + ".qweight", dropped(Q + ".scales")),
    ("awq", "missing-scale", DOWN + ".qweight", dropped(DOWN + ".scales")),
    ("bitsandbytes", "missing-scale", Q + ".weight", dropped(Q + ".weight.absmax")),
    ("modelopt-nvfp4", "orphan-scale", Q + ".weight_scale", dropped(Q + ".weight")),
    ("compressed-nvfp4", "orphan-scale", Q + ".weight_global_scale",
     dropped(Q + ".weight_packed")),
    ("deepseek-fp8", "orphan-scale", Q + ".weight_scale_inv", dropped(Q + ".weight")),
    ("gpt-oss", "orphan-scale", E + "_scales", dropped(E + "_blocks")),
    ("awq", "orphan-scale", Q + ".scales", dropped(Q + ".qweight")),
    ("modelopt-nvfp4", "scale-value", DOWN + ".weight_scale_2",
     changed(DOWN + ".weight_scale_2", lambda a: 1 / a)),
    ("modelopt-nvfp4", "scale-value", Q + ".weight_scale",
     changed(Q + ".weight_scale", put((3, 2), 0x7F))),
    ("modelopt-nvfp4", "scale-value", Q + ".weight_scale",
     changed(Q + ".weight_scale", put((3, 2), 0))),
    ("modelopt-fp8", "scale-value", DOWN + ".weight_scale",
     changed(DOWN + ".weight_scale", put(0, np.nan))),
    ("modelopt-fp8", "scale-value", DOWN + ".weight_scale",
     changed(DOWN + ".weight_scale", put(0, 0))),
    ("modelopt-fp8", "scale-value", DOWN + ".weight_scale",
     changed(DOWN + ".weight_scale", put(0, 1e-40))),
    ("modelopt-fp8", "scale-value", DOWN + ".weight_scale",
     changed(DOWN + ".weight_scale", lambda a: 1 / a)),
    ("compressed-nvfp4", "scale-value", DOWN + ".weight_global_scale",
     changed(DOWN + ".weight_global_scale", lambda a: 1 / a)),
    ("deepseek-fp8", "scale-value", DOWN + ".weight_scale_inv",
     changed(DOWN + ".weight_scale_inv", put((0, 1), np.inf))),
    ("deepseek-fp8", "scale-value", DOWN + ".weight_scale_inv",
     changed(DOWN + ".weight_scale_inv", put((0, 1), -1e-4))),
    ("deepseek-fp8", "scale-value", DOWN + ".weight_scale_inv",
     changed(DOWN + ".weight_scale_inv", lambda a: 1 / a)),
    ("gpt-oss", "scale-value", E + "_scales", changed(E + "_scales", put((1, 2, 3), 255))),
    ("gptq", "scale-value", Q + ".scales", changed(Q + ".scales", put((0, 5), np.nan))),
    ("modelopt-nvfp4", "scale-shape", Q + ".weight_scale",
     changed(Q + ".weight_scale", lambda a: a[:, :4])),
    ("compressed-nvfp4", "scale-shape", DOWN + ".weight_scale",
     changed(DOWN + ".weight_scale", lambda a: a.T)),
    ("deepseek-fp8", "scale-shape", GATE + ".weight_scale_inv",
     changed(GATE + ".weight_scale_inv", lambda a: np.full((3, 5), 2e-4, np.float32))),
    ("gpt-oss", "scale-shape", E + "_scales", changed(E + "_scales", lambda a: a[:, :, :3])),
    ("awq", "scale-shape", Q + ".scales", changed(Q + ".scales", lambda a: a[:, :100])),
    ("modelopt-nvfp4", "fused-scales", Q + ".weight_scale_2",
     changed(Q + ".weight_scale_2", lambda a: a * 3)),
    ("compressed-nvfp4", "fused-scales", GATE + ".weight_global_scale",
     changed(GATE + ".weight_global_scale", lambda a: a / 2)),
    ("modelopt-fp8", "fused-scales", Q + ".input_scale",
     changed(Q + ".input_scale", lambda a: a * 2)),
    ("modelopt-nvfp4", "config", DOWN + ".weight", configured(lambda q: q["ignore"].append(DOWN))),
    ("compressed-nvfp4", "config", DOWN + ".weight_packed",
     configured(lambda q: q["ignore"].append("re:.*layers\\.1\\.mlp\\.down_proj"))),
    ("modelopt-nvfp4", "config", DOWN + ".weight", plain_again(DOWN, (HIDDEN, INNER))),
    ("deepseek-fp8", "config", Q + ".weight", plain_again(Q, SQUARE)),
    ("compressed-nvfp4", "config", "model.layers.0.mlp.down_proj.weight_packed", configured(
        lambda q: q["config_groups"]["group_0"]["weights"].update(group_size=32))),
    ("gptq", "config", "model.layers.0.mlp.down_proj.qweight",
     configured(lambda q: q.update(group_size=128))),
    ("gptq", "config", "model.layers.0.mlp.down_proj.qweight",
     configured(lambda q: q.update(bits=8))),
    ("gptq", "config", "model.layers.0.mlp.down_proj.qweight",
     in_text_config(configured(lambda q: q.update(bits=8)))),
    ("gptq", "config", DOWN + ".qweight", eight_bits({"extra_config": {Q: {"bits": 8}}})),
    ("compressed-nvfp4", "config", "model.layers.0.mlp.down_proj.weight_packed",
     configured(lambda q: q.update(format="mxfp4-pack-quantized"))),
    ("modelopt-fp8", "config", "model.layers.0.mlp.down_proj.weight",
     configured(lambda q: q.update(format="mxfp8-quantized"))),
    ("compressed-nvfp4", "config", "model.layers.99.mlp.down_proj",
     configured(lambda q: q["ignore"].append("model.layers.99.mlp.down_proj"))),
    ("compressed-nvfp4", "index", Q + ".weight_packed",
     in_shards(lambda i: i["weight_map"].pop(Q + ".weight_packed"))),
    ("compressed-nvfp4", "index", Q + ".weight_packed", in_shards(
        lambda i: i["weight_map"].update(
            {Q + ".weight_packed": "model-00009-of-00003.safetensors"}))),
    ("compressed-nvfp4", "index", "model.ghost.weight", in_shards(
        lambda i: i["weight_map"].update(
            {"model.ghost.weight": "model-00001-of-00003.safetensors"}))),
    ("compressed-nvfp4", "index", "lm_head.weight", in_shards(
        extra=lambda c: {0: {"lm_head.weight": c.tensors["lm_head.weight"]},
                         2: {"lm_head.weight": c.tensors["lm_head.weight"]}})),
    ("compressed-nvfp4", "index", "model.safetensors.index.json", in_shards(
        lambda i: i["metadata"].update(total_size=7))),
    ("modelopt-nvfp4", "tied", "lm_head.weight", tied(1)),
    ("modelopt-fp8", "default-scale", DOWN + ".input_scale",
     changed(DOWN + ".input_scale", lambda a: np.ones_like(a))),
    ("gpt-oss", "default-scale", E + "_scales",
     changed(E + "_scales", lambda a: np.full_like(a, 127))),
    ("modelopt-nvfp4", "value", Q + ".weight", changed(Q + ".weight", np.zeros_like)),
    ("gpt-oss", "value", "lm_head.weight", changed("lm_head.weight", put((1, 2), 0x7FC0))),
]


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E4M3 = np.array([(c & 7) * 2.0**-9 if c < 8 else (1 + (c & 7) / 8) * 2.0**((c >> 3) - 7)
                 for c in range(127)])


def nearest(table, x):
    return np.abs(np.abs(x)[..., None] - table).argmin(-1).astype(np.uint8)


def fp4_codes(x):
    return nearest(E2M1, x) | np.where(x < 0, 8, 0).astype(np.uint8)


def in_bytes(codes):
    return codes[..., ::2] | codes[..., 1::2] << 4


def original_model():
    c = Checkpoint(8)
    for name, shape, _ in c.projections():
        c.tensors[name + ".weight"] = "F32", c.random.normal(0, 0.02, shape).astype(np.float32)
    return c


def quantized(of, layout, method):
    """The projections of a model in a layout."""
    c = Checkpoint(8)
    c.config["quantization_config"] = {"quant_method": method}
    for name, _, _ in c.projections():
        weight = of.tensors[name + ".weight"][1]
        for ending, array in layout(weight, int(name.split(".")[2])).items():
            c.tensors[name + ending] = array
    return c


def as_nvfp4(weight, layer):
    factor = np.float32((0.08 + layer / 1000) / 2688)  # one for the layer, as partners need
    blocks = weight.reshape(len(weight), -1, 16) / factor
    scales = nearest(E4M3, np.abs(blocks).max(-1) / 6)
    codes = fp4_codes(blocks / E4M3[scales][..., None]).reshape(weight.shape)
    return codes, scales, factor


def as_modelopt(weight, layer):
    codes, scales, factor = as_nvfp4(weight, layer)
    return {".weight": ("U8", in_bytes(codes)), ".weight_scale": ("F8_E4M3", scales),
            ".weight_scale_2": f32(factor)}


def as_compressed(weight, layer):
    codes, scales, factor = as_nvfp4(weight, layer)
    return {".weight_packed": ("U8", in_bytes(codes)), ".weight_scale": ("F8_E4M3", scales),
            ".weight_global_scale": f32(1 / factor)}


def as_mxfp4(weight, _=0):
    blocks = weight.reshape(len(weight), -1, 32)
    scales = (np.floor(np.log2(np.abs(blocks).max(-1))) - 2 + 127).astype(np.uint8)
    codes = fp4_codes(blocks / 2.0**(scales[..., None].astype(int) - 127)).reshape(weight.shape)
    return {".weight": ("U8", in_bytes(codes)), ".weight_scale": ("U8", scales)}


def fp8_codes(x):
    return nearest(E4M3, x) | np.where(x < 0, 0x80, 0).astype(np.uint8)


def as_fp8_rows(weight, _):
    scale = (np.abs(weight).max(1, keepdims=True) / 448).astype(np.float32)
    return {".weight": ("F8_E4M3", fp8_codes(weight / scale)), ".weight_scale": ("F32", scale)}


def turned(layout, name):
    """The transposed matrix in the layout."""
    def fault(c, of):
        weight = of.tensors[name + ".weight"][1]
        for ending, array in layout(np.ascontiguousarray(weight.T), 1).items():
            c.tensors[name + ending] = array
    return fault


def alone(fault):
    return lambda c, of: fault(c)


def exchanged(array):
    return array >> 4 | array << 4


def halves(length):
    """Neighbouring codes to the halves of a block, as ggml packs them."""
    def change(array):
        low, high = array & 15, array >> 4
        codes = np.stack([low, high], -1).reshape(-1, length)
        return (codes[:, :length // 2] | codes[:, length // 2:] << 4).reshape(array.shape)
    return change


def swizzled(array):
    rows, cols = array.shape
    tiles = array.reshape(rows // 128, 4, 32, cols // 4, 4)
    return np.ascontiguousarray(tiles.transpose(0, 3, 2, 1, 4)).reshape(rows, cols)


# Layout, tensor, words of the message, fault; read with --original alone.
CONVENTIONS = [
    (as_modelopt, Q + ".weight", "nibbles exchanged",
     alone(changed(Q + ".weight", exchanged))),
    (as_compressed, Q + ".weight_packed", "nibbles exchanged",
     alone(changed(Q + ".weight_packed", exchanged))),
    (as_mxfp4, DOWN + ".weight", "nibbles exchanged",
     alone(changed(DOWN + ".weight", exchanged))),
    (as_mxfp4, DOWN + ".weight", "first half of a block in low nibbles", alone(changed(DOWN + ".weight", halves(32)))),
    (as_modelopt, Q + ".weight_scale_2", "the tensor scale as a divisor",
     alone(changed(Q + ".weight_scale_2", lambda a: 1 / a))),
    (as_compressed, DOWN + ".weight_global_scale", "the tensor scale as a factor",
     alone(changed(DOWN + ".weight_global_scale", lambda a: 1 / a))),
    (as_fp8_rows, GATE + ".weight_scale", "the scales as divisors",
     alone(changed(GATE + ".weight_scale", lambda a: 1 / a))),
    (as_modelopt, Q + ".weight_scale", "128x4 order",
     alone(changed(Q + ".weight_scale", swizzled))),
    (as_modelopt, Q + ".weight", "rows and columns exchanged", turned(as_modelopt, Q)),
    (as_fp8_rows, DOWN + ".weight", "rows and columns exchanged", turned(as_fp8_rows, DOWN)),
    (as_modelopt, Q + ".weight_scale_2", "constant factor",
     alone(changed(Q + ".weight_scale_2", lambda a: 448 * a))),
    (as_mxfp4, Q + ".weight_scale", "constant factor",
     alone(changed(Q + ".weight_scale", lambda a: a + 1))),
    (as_modelopt, Q + ".weight_scale", "",  # NaN in one block
     alone(changed(Q + ".weight_scale", put((0, 0), 0x7F)))),
    (as_mxfp4, Q + ".weight", "by any reading",
     alone(lambda c: c.tensors.update({Q + ".weight": c.tensors[L + "self_attn.o_proj.weight"]}))),
]


def check_constants(folder):
    """One tensor scale for a matrix of all layers, whose maxima differ."""
    failures = 0
    name = "model.layers.{}.mlp.down_proj"
    def fp8(weight, _):
        return {".weight": ("F8_E4M3", fp8_codes(weight / 3e-4)), ".weight_scale": f32(3e-4)}

    for layout, ending in ((as_modelopt, ".weight_scale_2"), (fp8, ".weight_scale")):
        of = original_model()
        for same in (False, True):  # maxima
            c = quantized(of, layout if layout == as_modelopt else as_fp8, "other")
            for layer in range(LAYERS):
                weight = of.tensors[name.format(0) + ".weight"][1]
                coded = layout(weight if same else weight * (1 - layer / 8), 0)
                c.tensors.update({name.format(layer) + part: array for part, array in coded.items()})
            path = os.path.join(folder, f"constant-{layout.__name__}-{same}")
            c.write(path)
            for options in ((), ("--values",)):
                found = [(f["rule"], f["tensor"]) for f in lint(path, "--rules", "default-scale", *options)]
                expected = [("default-scale", name.format(0) + ending)] if options and not same else []
                if found != expected:
                    print(f"constant {layout.__name__} {same} {options}: {found}, not {expected}")
                    failures += 1
    return failures


def check_conventions(folder):
    failures = check_constants(folder)
    of = original_model()
    original = os.path.join(folder, "original")
    of.write(original)
    for layout in (as_modelopt, as_compressed, as_mxfp4, as_fp8_rows):
        path = os.path.join(folder, layout.__name__)
        quantized(of, layout, "other").write(path)
        for f in lint(path, "--original", original):
            print(f"{layout.__name__}: {f['rule']} {f['tensor']}: {f['message']}; {f['found']}")
            failures += 1
    for i, (layout, tensor, words_of, fault) in enumerate(CONVENTIONS):
        c = quantized(of, layout, "other")
        fault(c, of)
        path = os.path.join(folder, f"convention{i}")
        c.write(path)
        found = [f for f in lint(path, "--original", original) if f["rule"] == "convention"]
        if not words_of:
            if found:
                print(f"{layout.__name__}, convention {i}: {found}")
                failures += 1
            continue
        if len(found) != 1 or found[0]["tensor"] != tensor or words_of not in found[0]["message"]:
            print(f"{layout.__name__}, convention {i}: {words_of} of {tensor}, not {found}")
            failures += 1
    return failures


# ggml's numbers of types, elements and bytes of a block.
GGML = {"F32": (0, 1, 4), "Q8_0": (8, 32, 34), "MXFP4": (39, 32, 17), "NVFP4": (40, 64, 36)}


class Gguf:
    """Tensors by name (type, shape, bytes) and metadata of strings and UINT32."""

    def __init__(self, kind):
        self.random = np.random.default_rng(10)
        self.metadata = {"general.architecture": "llama", "llama.block_count": LAYERS}
        self.tensors = {"output_norm.weight": ("F32", (HIDDEN,), np.ones(HIDDEN, np.float32).view(np.uint8))}
        for layer in range(LAYERS):
            for name, (rows, cols) in {"attn_q": (HIDDEN, HIDDEN), "ffn_down": (HIDDEN, INNER)}.items():
                self.add(f"blk.{layer}.{name}", kind, rows, cols)
            self.tensors[f"blk.{layer}.attn_norm.weight"] = self.tensors["output_norm.weight"]

    def add(self, stem, kind, rows, cols):
        _, elements, size = GGML[kind]
        blocks = self.random.integers(0, 256, (rows * cols // elements, size), dtype=np.uint8)
        if kind == "MXFP4":
            blocks[:, 0] = self.random.integers(110, 126, len(blocks))
        elif kind == "NVFP4":
            blocks[:, :4] = self.random.integers(0x20, 0x7F, (len(blocks), 4))
            self.tensors[stem + ".scale"] = "F32", (1,), np.array([1e-4], np.float32).view(np.uint8)
        else:
            blocks[:, :2] = np.full((len(blocks), 1), 0.01, np.float16).view(np.uint8)
        self.tensors[stem + ".weight"] = kind, (rows, cols), blocks

    def write(self, path, parts=1):
        names = list(self.tensors)
        for part in range(parts):
            mine = names[part::parts]
            metadata = dict(self.metadata) if part == 0 else {}
            text = b"GGUF" + struct.pack("<IQQ", 3, len(mine), len(metadata))
            for key, value in metadata.items():
                text += struct.pack("<Q", len(key)) + key.encode()
                text += (struct.pack("<II", 4, value) if isinstance(value, int)
                         else struct.pack("<IQ", 8, len(value)) + value.encode())
            data = b""
            for name in mine:
                kind, shape, array = self.tensors[name]
                text += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", len(shape))
                text += b"".join(struct.pack("<Q", n) for n in reversed(shape))
                text += struct.pack("<IQ", GGML[kind][0], len(data))
                data += array.tobytes()
                data += bytes(-len(data) % 32)
            file = path if parts == 1 else f"{path[:-5]}-{part + 1:05}-of-{parts:05}.gguf"
            with open(file, "wb") as out:
                out.write(text + bytes(-len(text) % 32) + data)
        return file


def block_byte(name, block, at, value):
    def fault(g):
        g.tensors[name][2][block, at] = value
    return fault


def tensor_values(name, *values):
    def fault(g):
        g.tensors[name] = "F32", (len(values),), np.array(values, np.float32).view(np.uint8)
    return fault


def lost_block(g):
    g.tensors["blk.1.attn_q.weight"][2][3, :12] = [0, 0x38, 0x38, 0x38] + [0x11] * 8


B = "blk.1.attn_q"
GGUF_FAULTS = [
    ("MXFP4", "scale-value", B + ".weight", block_byte(B + ".weight", 7, 0, 255)),
    ("NVFP4", "scale-value", B + ".weight", block_byte(B + ".weight", 7, 2, 0x7F)),
    ("NVFP4", "scale-value", B + ".weight", lost_block),
    ("NVFP4", "scale-value", B + ".scale", tensor_values(B + ".scale", np.nan)),
    ("NVFP4", "missing-scale", B + ".weight", dropped(B + ".scale")),
    ("NVFP4", "orphan-scale", B + ".scale", dropped(B + ".weight")),
    ("Q8_0", "scale-value", B + ".weight", block_byte(B + ".weight", 5, 1, 0x7E)),
    ("MXFP4", "value", "output_norm.weight",
     tensor_values("output_norm.weight", *[1.0] * (HIDDEN - 1), np.nan)),
    ("Q8_0", "index", f"blk.{LAYERS}", lambda g: g.metadata.update({"llama.block_count": LAYERS + 1})),
    ("Q8_0", "index", f"blk.{LAYERS - 1}",
     lambda g: g.metadata.update({"llama.block_count": LAYERS - 1})),
    ("Q8_0", "index", "blk.1.attn_norm.weight", dropped("blk.1.attn_norm.weight")),
    ("MXFP4", "index", B + ".weight", dropped(B + ".weight")),
]


def check_gguf_order(folder):
    """MXFP4 blocks against the original: the first half of a block is in the low nibbles."""
    failures = 0
    plain, coded = Gguf("Q8_0"), Gguf("MXFP4")
    for name in [n for n in coded.tensors if coded.tensors[n][0] == "MXFP4"]:
        shape = coded.tensors[name][1]
        weight = coded.random.normal(0, 0.02, shape).astype(np.float32)
        plain.tensors[name] = "F32", shape, weight.view(np.uint8)
        of = as_mxfp4(weight)
        pairs = of[".weight"][1].reshape(-1, 16)
        coded.tensors[name] = "MXFP4", shape, np.concatenate(
            [of[".weight_scale"][1].reshape(-1, 1), halves(32)(pairs)], 1)
    original = plain.write(os.path.join(folder, "original.gguf"))
    name = B + ".weight"
    sound = coded.tensors[name]
    low, high = sound[2][:, 1:] & 15, sound[2][:, 1:] >> 4
    codes = np.concatenate([low, high], 1)
    for words_of, codes_of in (("", low | high << 4), ("nibbles exchanged", high | low << 4),
                               ("neighbouring codes", in_bytes(codes))):
        coded.tensors[name] = *sound[:2], np.concatenate([sound[2][:, :1], codes_of], 1)
        found = lint(coded.write(os.path.join(folder, "order.gguf")), "--original", original)
        if (len(found) != bool(words_of) or
                any(f["tensor"] != name or words_of not in f["message"] for f in found)):
            print(f"order of codes in GGUF: '{words_of}': {found}")
            failures += 1
    return failures


def check_gguf(folder):
    failures = check_gguf_order(folder)
    for kind in ("MXFP4", "NVFP4", "Q8_0"):
        for parts in (1, 2):
            path = Gguf(kind).write(os.path.join(folder, f"sound-{kind}.gguf"), parts)
            for f in lint(path, "--values"):
                print(f"{kind} in {parts}: {f}")
                failures += 1
    g = Gguf("NVFP4")  # ggml multiplies each of the matrices of attention by its own scale
    for layer in range(LAYERS):
        for name in ("attn_k", "attn_v"):
            g.add(f"blk.{layer}.{name}", "NVFP4", HIDDEN, HIDDEN)
    tensor_values("blk.0.attn_k.scale", 2e-4)(g)
    for f in lint(g.write(os.path.join(folder, "own-scales.gguf")), "--values"):
        print(f"NVFP4 with own scales: {f}")
        failures += 1
    os.remove(path.replace("00002-of", "00001-of"))
    found = lint(path)
    if [(f["rule"], f["message"]) for f in found] != [("index", "lacks shards")]:
        print(f"a part alone: {found}")
        failures += 1
    for i, (kind, rule, tensor, fault) in enumerate(GGUF_FAULTS):
        g = Gguf(kind)
        fault(g)
        path = g.write(os.path.join(folder, f"fault{i}.gguf"))
        found = [(f["rule"], f["tensor"]) for f in lint(path, "--values")]
        if (rule, tensor) not in found:
            print(f"{kind}, fault {i}: {rule} of {tensor} is not among {found[:4]}")
            failures += 1
        if len({r for r, _ in found}) > (2 if rule in ("scale-value", "orphan-scale") else 1):
            print(f"{kind}, fault {i}: more than {rule}: {found}")
            failures += 1
    return failures


def as_fp8(weight, _):
    scale = np.float32(np.abs(weight).max() / 448)
    return {".weight": ("F8_E4M3", fp8_codes(weight / scale)), ".weight_scale": f32(scale)}


def scaled_codes(name, factor):
    """The same values under another scale: what a quantizer of one matrix alone would have stored."""
    def fault(c):
        c.tensors[name] = f32(c.tensors[name][1][0] * factor)
    return fault


def fp8_values(c, name):
    codes = c.tensors[name + ".weight"][1]
    return np.where(codes & 0x80, -1, 1) * E4M3[codes & 0x7F] * c.tensors[name + ".weight_scale"][1]


def check_effects(folder):
    """What each engine does with partners that differ, with the error where values are read."""
    failures = 0
    of = original_model()
    partners = [L + f"self_attn.{x}_proj" for x in "qkv"]
    cases = []
    for layout, ending in ((as_modelopt, ".weight_scale_2"), (as_compressed, ".weight_global_scale")):
        c = quantized(of, layout, "other")
        scaled_codes(partners[1] + ending, 3)(c)
        smaller = layout == as_compressed
        # As factors two of three are three times as large, as divisors a third.
        energies = [np.square(of.tensors[p + ".weight"][1]).sum() for p in partners]
        energies[1] *= 1 / 9 if smaller else 9
        rmse = (2 / 3 if smaller else 2) * np.sqrt((energies[0] + energies[2]) / sum(energies))
        said = ["vLLM and SGLang take the largest", "smaller by a factor of 3" if smaller
                else "larger by a factor of 3"]
        cases.append((c, ending, said + ([] if smaller else [
            "TensorRT-LLM refuses", "llama.cpp keeps each"]), rmse))
    c = quantized(of, as_fp8, "modelopt")
    c.config["quantization_config"]["quant_algo"] = "FP8"
    scaled_codes(partners[1] + ".weight_scale", 3.3)(c)
    largest = max(float(c.tensors[p + ".weight_scale"][1][0]) for p in partners)
    values = np.concatenate([fp8_values(c, p).ravel() for p in partners])
    again = np.sign(values) * E4M3[nearest(E4M3, values / largest)] * largest
    cases.append((c, ".weight_scale", ["vLLM, SGLang and TensorRT-LLM quantize the others again",
                                       "llama.cpp keeps each"],
                  np.sqrt(np.square(again - values).sum() / np.square(values).sum())))
    for i, (c, ending, said, rmse) in enumerate(cases):
        path = os.path.join(folder, f"effect{i}")
        c.write(path)
        for options in ((), ("--values",)):
            found = [f["effect"] for f in lint(path, "--rules", "fused-scales", *options)
                     if f["tensor"].startswith(L + "self_attn") and f["tensor"].endswith(ending)]
            at = re.search("R-MSE ([0-9.e-]+) of them together", found[0]) if found else None
            if (len(found) != 1 or any(text not in found[0] for text in said) or
                    bool(at) != bool(options) or at and abs(float(at[1]) / rmse - 1) > 0.05):
                print(f"effect {i} {options}: {found}, not {said} {rmse:.4g}")
                failures += 1
    return failures


def modelopt_file(c):
    """The configuration in modelopt's own file alone."""
    c.quantization = {"quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head", Q]}}
    del c.config["quantization_config"]


REMOTE = [
    ("compressed-nvfp4", None, in_shards()),
    ("compressed-nvfp4", "index", in_shards(lambda i: i["weight_map"].pop(Q + ".weight_packed"))),
    ("compressed-nvfp4", "index", in_shards(lambda i: i["metadata"].update(total_size=7))),
    ("compressed-nvfp4", "index", in_shards(lambda i: i["weight_map"].update(
        {Q + ".weight_packed": "model-00009-of-00003.safetensors"}))),
    ("compressed-nvfp4", "config", lambda c: (in_shards()(c), configured(
        lambda q: q["ignore"].append(DOWN))(c))),
    ("modelopt-nvfp4", "config", lambda c: (in_shards()(c), modelopt_file(c))),
]


def check_remote(folder):
    """Of an index at an address and of a repository of the hub: the findings of the folder."""
    version = subprocess.run([MX, "version"], capture_output=True, text=True).stdout
    if not re.search("^remote files +yes", version, re.MULTILINE):
        return 0
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "remote"))
    import server
    failures = 0
    for i, (name, rule, fault) in enumerate(REMOTE):
        c = SOUND[name]()
        fault(c)
        path = os.path.join(folder, f"remote{i}")
        c.write(path)
        if hasattr(c, "quantization"):
            with open(os.path.join(path, "hf_quant_config.json"), "w") as file:
                json.dump(c.quantization, file)
        local = lint(path)
        if {f["rule"] for f in local} != ({rule} if rule else set()):
            print(f"{name}, remote {i}, on disk: {local}")
            failures += 1
        of = server.Server(path)
        os.environ["HF_ENDPOINT"] = of.address
        hub = f"hf://org/name@{server.COMMIT}"
        files = f"{of.address}/files"
        for address, shown in (("hf://org/name", hub), (hub, hub),
                               ("hf://org/name/model.safetensors.index.json", hub),
                               (files + "/model.safetensors.index.json", files)):
            said = json.loads(json.dumps(lint(address)).replace(shown, path))
            # Without a list of files, one that cannot be had is all that is known.
            alike = [(f["rule"], f["severity"]) for f in said] == [
                (f["rule"], f["severity"]) for f in local]
            if said != local and not (shown == files and i == 3 and alike):
                print(f"{name}, remote {i}, {address}: {said}, not {local}")
                failures += 1
        of.shutdown()
    return failures


def check_samples(folder):
    """Long arrays of scales: the first, middle and last 64 KiB, or all with --values."""
    failures = 0
    scales = 1 << 19
    for at, sampled in ((0, True), (scales // 2, True), (scales - 1, True), (1 << 17, False)):
        c = Checkpoint(9)
        c.tensors["a.weight"] = "U8", c.bytes(4096, 1024)
        c.tensors["a.weight_scale"] = c.e4m3_scales(4096, 128)
        c.tensors["a.weight_scale"][1].reshape(-1)[at] = 0x7F
        c.tensors["a.weight_scale_2"] = f32(1e-4)
        path = os.path.join(folder, f"long{at}")
        c.write(path)
        for options in ((), ("--values",)):
            said = results(path, "--rules", "scale-value", *options)
            found = [f["found"] for f in said["results"]]
            read = (said["scale_bytes_read"], said["scale_bytes"])
            all_of = scales + 4
            if options:
                expected = [f"1 of {scales} scales"], (all_of, all_of)
            else:
                expected = ([f"1 of {3 << 16} scales read of {scales}"] if sampled else [],
                            ((3 << 16) + 4, all_of))
            if (found, read) != expected:
                print(f"long scales, {at} {options}: {found} {read}, not {expected}")
                failures += 1
    return failures


def lint(path, *options):
    return results(path, *options)["results"]


def results(path, *options):
    run = subprocess.run([MX, "lint", path, "--json", "-", "--quiet", *options],
                         capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(f"{path}: exit code {run.returncode}: {run.stderr}")
    said = json.loads(run.stdout)
    errors = any(f["severity"] == "error" for f in said["results"])
    if run.returncode != int(errors):
        sys.exit(f"{path}: exit code {run.returncode} for {said}")
    return said


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        clean = [(name, lambda c: None) for name in SOUND] + SOUND_VARIANTS
        for i, (name, change) in enumerate(clean):
            c = SOUND[name]()
            change(c)
            path = os.path.join(folder, f"sound{i}")
            c.write(path)
            for f in lint(path, "--values", "--original", path):
                print(f"{name}, sound {i}: {f['rule']} {f['tensor']}: {f['message']}; {f['found']}")
                failures += 1
        for i, (name, rule, tensor, fault) in enumerate(FAULTS):
            c = SOUND[name]()
            fault(c)
            path = os.path.join(folder, f"fault{i}")
            c.write(path)
            found = [(f["rule"], f["tensor"]) for f in lint(path, "--values")]
            if not any(r == rule and t.endswith(tensor) for r, t in found):
                print(f"{name}, fault {i}: {rule} of {tensor} is not among {found[:4]}")
                failures += 1
            if any(r == rule for r, _ in found):
                ignored = lint(path, "--values", "--ignore", f"{rule}:*")
                if any(f["rule"] == rule for f in ignored):
                    print(f"fault {i}: --ignore leaves {rule}")
                    failures += 1
        failures += check_conventions(folder) + check_samples(folder)
        failures += check_gguf(folder) + check_remote(folder) + check_effects(folder)
    print(f"{len(clean)} sound checkpoints, {len(FAULTS) + len(CONVENTIONS) + len(GGUF_FAULTS)} faults, "
          f"{failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
