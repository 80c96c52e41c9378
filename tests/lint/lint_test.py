# SPDX-License-Identifier: Apache-2.0
"""mx lint on checkpoints with planted faults: each is found by its rule at its tensor, and the
sound ones give no finding. Usage: lint_test.py MX"""
import json
import os
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
SOUND_VARIANTS = [
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
    ("compressed-nvfp4", "config", "model.layers.0.mlp.down_proj.weight_packed",
     configured(lambda q: q.update(format="mxfp4-pack-quantized"))),
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


def lint(path, *options):
    run = subprocess.run([MX, "lint", path, "--json", "-", "--quiet", *options],
                         capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(f"{path}: exit code {run.returncode}: {run.stderr}")
    found = json.loads(run.stdout)["results"]
    errors = any(f["severity"] == "error" for f in found)
    if run.returncode != int(errors):
        sys.exit(f"{path}: exit code {run.returncode} for {found}")
    return found


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        clean = [(name, lambda c: None) for name in SOUND] + SOUND_VARIANTS
        for i, (name, change) in enumerate(clean):
            c = SOUND[name]()
            change(c)
            path = os.path.join(folder, f"sound{i}")
            c.write(path)
            for f in lint(path, "--values"):
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
    print(f"{len(clean)} sound checkpoints, {len(FAULTS)} faults, {failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
