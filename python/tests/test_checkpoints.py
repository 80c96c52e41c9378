# SPDX-License-Identifier: Apache-2.0
"""Quantized checkpoints: files and findings are those of the command."""
import json
import os
import struct
import subprocess

import numpy as np
import pytest

import libmx

CONFIG = {"model_type": "llama", "num_hidden_layers": 2}
NAMES = {"float32": "F32", "float16": "F16", "uint8": "F8_E4M3"}


def save(path, tensors):
    """A safetensors file in the given order; uint8 are codes of E4M3."""
    header, data = {}, b""
    for name, x in tensors.items():
        header[name] = {"dtype": NAMES[x.dtype.name], "shape": list(x.shape),
                        "data_offsets": [len(data), len(data) + x.nbytes]}
        data += x.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def broken(folder):
    """q_proj lacks its scale, and k_proj has one that is NaN."""
    folder.mkdir()
    codes = np.full((4, 8), 0x38, np.uint8)
    at = "model.layers.0.self_attn."
    save(folder / "model.safetensors",
         {at + "q_proj.weight": codes, at + "k_proj.weight": codes,
          at + "k_proj.weight_scale": np.full(1, np.nan, np.float32)})
    (folder / "config.json").write_text('{"model_type": "llama"}')
    return folder


@pytest.mark.parametrize("options, arguments", [
    ({}, []), ({"values": True}, ["--values"]), ({"rules": "scale-value"}, ["--rules", "scale-value"]),
    ({"ignore": ["missing-scale:*q_proj*"]}, ["--ignore", "missing-scale:*q_proj*"]),
    ({"original": "itself"}, [])])
def test_findings_are_those_of_the_command(mx, tmp_path, options, arguments):
    folder, path = broken(tmp_path / "model"), tmp_path / "lint.json"
    if "original" in options:
        options, arguments = {"original": folder}, ["--original", folder]
    ran = subprocess.run([mx, "lint", folder, *arguments, "--all", "--json", path],
                         capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"})
    assert ran.returncode == 1
    found = libmx.lint(folder, **options)
    found.save(tmp_path / "here.json")
    assert (tmp_path / "here.json").read_bytes() == path.read_bytes()
    assert found.table() == ran.stdout
    assert any(f["rule"] == "scale-value" and f["severity"] == "error" for f in found)


def test_lint_names_what_is_wrong(tmp_path):
    folder = broken(tmp_path / "model")
    assert {f["rule"] for f in libmx.lint(str(folder))} >= {"missing-scale", "scale-value"}
    with pytest.raises(libmx.Error, match="scale-valeu.*scale-value"):
        libmx.lint(folder, rules=["scale-valeu"])
    with pytest.raises(FileNotFoundError):
        libmx.lint(tmp_path / "nothing")


def files_of(folder):
    return {f.name: f.read_bytes() for f in sorted(folder.iterdir())}


def quantized(mx, folder, out, layout, recipe):
    subprocess.run([mx, "quantize", folder, "-o", out, "-r", recipe, "--layout", layout],
                   check=True, capture_output=True)
    return files_of(out)


def model():
    """By name; every third is float16."""
    random, shapes = np.random.default_rng(5), {"model.norm": (128,)}
    for layer in (0, 1):
        at = f"model.layers.{layer}."
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            shapes[f"{at}self_attn.{part}"] = (128, 128)
        shapes[at + "mlp.up_proj"] = shapes[at + "mlp.gate_proj"] = (256, 128)
        shapes[at + "mlp.down_proj"], shapes[at + "input_layernorm"] = (128, 256), (128,)
    return {f"{name}.weight": random.standard_normal(shape).astype(np.float32 if at % 3 else np.float16)
            for at, (name, shape) in enumerate(shapes.items())}


def folder_of(path, config=CONFIG):
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    return path


@pytest.mark.parametrize("layout, recipe", [
    ("compressed-tensors", "mxfp4:scale=even"),
    ("compressed-tensors", "nvfp4:dialect=compressed-tensors"), ("compressed-tensors", "fp8_128x128"),
    ("compressed-tensors", "e4m3:scale=tensor"), ("modelopt", "e4m3:scale=channel"),
    ("deepseek", "fp8_128x128")])
def test_files_are_those_of_the_command(mx, tmp_path, layout, recipe):
    folder, tensors = folder_of(tmp_path / "model"), model()
    save(folder / "model.safetensors", dict(sorted(
        tensors.items(), key=lambda x: (x[1].dtype == np.float16, x[0]))))
    (folder / "tokenizer.json").write_text("{}")
    expected = quantized(mx, folder, tmp_path / "command", layout, recipe)
    shuffled = dict(reversed(tensors.items()))
    kept = libmx.save_checkpoint(shuffled, tmp_path / "here", layout=layout, recipe=recipe, config=folder)
    assert files_of(tmp_path / "here") == expected
    assert sorted(kept) == [name for name in sorted(tensors) if "norm" in name]
    libmx.save_checkpoint(shuffled, tmp_path / "alone", layout=layout, recipe=libmx.recipe(recipe),
                          config=CONFIG, threads=2)
    del expected["tokenizer.json"]
    assert files_of(tmp_path / "alone") == expected


def test_weights_that_are_stored_transposed_are_known_by_the_configuration(mx, tmp_path):
    folder = folder_of(tmp_path / "model", {"model_type": "gpt2"})
    tensors = {"h.0.attn.c_attn.weight": np.ones((64, 192), np.float32),
               "h.0.mlp.up_proj.weight": np.ones((64, 64), np.float32)}
    save(folder / "model.safetensors", tensors)
    expected = quantized(mx, folder, tmp_path / "command", "compressed-tensors", "mxfp4")
    kept = libmx.save_checkpoint(tensors, tmp_path / "here", layout="compressed-tensors", recipe="mxfp4",
                                 config=folder / "config.json")
    assert files_of(tmp_path / "here") == expected
    assert "last axis" in kept["h.0.attn.c_attn.weight"] and len(kept) == 1


def test_serving_has_the_bits_of_training(tmp_path):
    tensors = model()
    kept = libmx.save_checkpoint(tensors, tmp_path / "q", layout="compressed-tensors", recipe="mxfp4",
                                 config=CONFIG)
    with libmx.open(tmp_path / "q") as m:
        assert sorted(m) == sorted(tensors)
        for name, x in tensors.items():
            served = x if name in kept else libmx.fake_quantize(x, "mxfp4")
            np.testing.assert_array_equal(m[name], served)
    assert len(libmx.lint(tmp_path / "q")) == 0


def test_order_is_that_of_the_library(mx, tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    folder = folder_of(tmp_path / "model")
    tensors = {f"{t}.weight": np.zeros((2, 2), t) for t in ("u1", "i1", "i2", "u2", "f2", "i4", "u4", "f8",
                                                            "i8", "u8")}
    tensors["a.weight"] = tensors["b.weight"] = np.ones((4, 32), np.float32)
    safetensors.save_file(tensors, folder / "model.safetensors")
    expected = quantized(mx, folder, tmp_path / "command", "compressed-tensors", "mxfp8")
    libmx.save_checkpoint(tensors, tmp_path / "here", layout="compressed-tensors", recipe="mxfp8",
                          config=folder)
    assert files_of(tmp_path / "here") == expected


def test_what_cannot_be_written_is_named(tmp_path):
    def save_as(source, **options):
        libmx.save_checkpoint(source, tmp_path / "new", **{
            "layout": "compressed-tensors", "recipe": "mxfp4", "config": CONFIG, **options})

    tensors = model()
    for options, said in (({"layout": "modelop"}, "modelopt"), ({"layout": "gguf"}, "tokenizer"),
                          ({"recipe": "bf16"}, "cannot hold"), ({"recipe": "mxfp6"}, "cannot hold"),
                          ({"config": None}, "config="), ({"config": tmp_path}, "config.json")):
        with pytest.raises(libmx.Error, match=said):
            save_as(tensors, **options)
    with pytest.raises(libmx.Error, match="operand"):
        save_as({"a.norm": np.ones(32, np.float32), "b.norm": np.ones(32, np.float32)})
    assert not (tmp_path / "new").exists()
    save_as(tensors)
    with pytest.raises(libmx.Error, match="no empty folder"):
        save_as(tensors)


HEADS, KEYS, WIDTH, VOCABULARY = 4, 2, 64, 48


def language_model(path, kind):
    """A folder with a configuration and a tokenizer, and the tensors of its model; those that end the names
    of vectors, and a matrix, are float16."""
    words = ["<unk>", "<s>", "</s>"] + [chr(c) for c in range(ord("a"), ord("z") + 1)] + ["in"]
    added = [{"id": i, "content": w, "special": True, **dict.fromkeys(
        ("single_word", "lstrip", "rstrip", "normalized"), False)} for i, w in enumerate(words[:3])]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    folder_of(path, {"model_type": kind, "hidden_size": WIDTH, "intermediate_size": 2 * WIDTH, "rms_norm_eps": 1e-6,
                     "num_attention_heads": HEADS, "num_key_value_heads": KEYS, "num_hidden_layers": 2,
                     "head_dim": WIDTH // HEADS, "hidden_act": "silu", "max_position_embeddings": 64,
                     "rope_theta": 1e4, "tie_word_embeddings": True, "vocab_size": VOCABULARY})
    (path / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": added, "pre_tokenizer": level,
        "model": {"type": "BPE", "vocab": {w: i for i, w in enumerate(words)}, "merges": [["i", "n"]]}}))
    random, keys = np.random.default_rng(6), KEYS * WIDTH // HEADS
    shapes = {"model.embed_tokens": (VOCABULARY, WIDTH), "model.norm": (WIDTH,)}
    for at in ("model.layers.0.", "model.layers.1."):
        shapes.update({f"{at}self_attn.{part}_proj": (keys if part in "kv" else WIDTH, WIDTH) for part in "qkvo"})
        shapes.update({f"{at}mlp.{part}_proj": (2 * WIDTH, WIDTH) for part in ("gate", "up")})
        shapes.update({f"{at}mlp.down_proj": (WIDTH, 2 * WIDTH), f"{at}input_layernorm": (WIDTH,),
                       f"{at}post_attention_layernorm": (WIDTH,)})
        if kind == "qwen3":
            shapes.update({f"{at}self_attn.{part}_norm": (WIDTH // HEADS,) for part in "qk"})
    return {f"{name}.weight": random.standard_normal(shape).astype(
        np.float16 if len(shape) == 1 or "v_proj" in name else np.float32) for name, shape in shapes.items()}


PARTS = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "attn_q_norm": "self_attn.q_norm",
         "ffn_norm": "post_attention_layernorm", "attn_k_norm": "self_attn.k_norm"}


def in_gguf(name, tensors, kind):
    """What a file calls `name`, in its order of rows: in queries and keys of llama, neighbours turn together."""
    if not name.startswith("blk."):
        return tensors[{"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}[name]]
    _, layer, part, _ = name.split(".")
    x = tensors[f"model.layers.{layer}.{PARTS[part]}.weight"]
    heads = {"attn_q": HEADS, "attn_k": KEYS}.get(part) if kind == "llama" else None
    return x.reshape(heads, 2, -1, x.shape[1]).swapaxes(1, 2).reshape(x.shape) if heads else x


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
@pytest.mark.parametrize("recipe, layout", [
    ("mxfp4:scale=even", "MXFP4"), ("nvfp4", "ggml-nvfp4"), ("nvfp4:scale=single-level", "NVFP4"), ("q8_0", "Q8_0")])
def test_gguf(mx, tmp_path, recipe, layout, kind):
    """The file of the command, and what libmx and mx read in it."""
    folder, path = tmp_path / "model", tmp_path / "model.gguf"
    tensors = language_model(folder, kind)
    save(folder / "model.safetensors", tensors)
    subprocess.run([mx, "quantize", folder, "-o", path, "-r", recipe, "--layout", "gguf"], check=True,
                   capture_output=True)
    expected = path.read_bytes()
    (folder / "model.safetensors").unlink()
    for config in (folder, folder / "config.json"):
        kept = libmx.save_checkpoint(dict(reversed(tensors.items())), path, layout="gguf", recipe=recipe,
                                     config=config)
        assert path.read_bytes() == expected
    with libmx.open(path) as m:
        assert len([name for name in m if not name.endswith(".scale")]) == len(tensors)
        assert sorted(kept) == sorted(name for name in m if "norm" in name or "token_embd" in name)
        for name in m:
            if name.endswith(".scale"):
                continue
            x = in_gguf(name, tensors, kind)
            if name not in kept and recipe != "q8_0":
                x = libmx.fake_quantize(x.astype(np.float32), recipe)
            atol = np.abs(x).max() / 127 if name not in kept and recipe == "q8_0" else 0
            np.testing.assert_allclose(m[name], x, rtol=0, atol=atol, err_msg=name)
    listed = subprocess.run([mx, "tensors", path, "--json", "-"], check=True, capture_output=True, text=True).stdout
    layouts = {t["tensor"]: t["layout"] for t in json.loads(listed)["results"] if t["layout"]}
    assert set(layouts.values()) == {layout} and len(layouts) == 14


def test_gguf_as_the_library_gguf_reads_it(tmp_path):
    gguf = pytest.importorskip("gguf")
    tensors = language_model(tmp_path / "model", "llama")
    for recipe, block_type in (("mxfp4", "MXFP4"), ("nvfp4", "NVFP4"), ("q8_0", "Q8_0")):
        path = tmp_path / f"{block_type}.gguf"
        kept = libmx.save_checkpoint(tensors, path, layout="gguf", recipe=recipe, config=tmp_path / "model")
        reader = gguf.GGUFReader(path)
        assert reader.get_field("general.architecture").contents() == "llama"
        assert reader.get_field("tokenizer.ggml.tokens").contents()[3] == "a"
        found = {t.name: t for t in reader.tensors}
        for name, t in found.items():
            if name.endswith(".scale"):
                continue
            x = in_gguf(name, tensors, "llama")
            assert list(t.shape) == list(reversed(x.shape))
            if name in kept:
                assert t.tensor_type.name == ("F16" if x.dtype == np.float16 and x.ndim == 2 else "F32")
                np.testing.assert_array_equal(np.asarray(t.data, np.float32).reshape(x.shape), x)
                continue
            assert t.tensor_type.name == block_type
            x = x.astype(np.float32)
            if recipe == "q8_0":
                np.testing.assert_array_equal(t.data, gguf.quantize(x, t.tensor_type))
                continue
            outer = found.get(name.replace(".weight", ".scale"))
            values = gguf.dequantize(t.data, t.tensor_type) * (1 if outer is None else outer.data[0])
            np.testing.assert_array_equal(values, libmx.fake_quantize(x, recipe))


def test_what_gguf_cannot_hold_is_one_line(tmp_path):
    folder, path = tmp_path / "model", tmp_path / "out" / "model.gguf"
    path.parent.mkdir()
    tensors, other = language_model(folder, "llama"), folder_of(tmp_path / "other", {"model_type": "gpt2"})
    alone = folder_of(tmp_path / "alone", json.loads((folder / "config.json").read_text()))
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    for options, said in (
            ({"recipe": "mxfp8"}, "cannot hold 'mxfp8'; it has mxfp4, nvfp4, q8_0"),
            ({"recipe": "mxfp5"}, "mxfp5"), ({"recipe": "bf16"}, "bf16"), ({"config": CONFIG}, "tokenizer"),
            ({"config": tmp_path / "x.gguf"}, "tokenizer"), ({"config": other}, "gpt2"),
            ({"config": tmp_path}, "config.json"), ({"config": alone}, "no tokenizer.json"),
            ({"folder": tmp_path / "out" / "model.npy"}, ".gguf"), ({"input_scales": path}, "no static scales"),
            ({"source": {**tensors, "model.extra.weight": tensors["model.norm.weight"]}}, "model.extra.weight")):
        with pytest.raises(libmx.Error, match=said) as caught:
            libmx.save_checkpoint(**{"source": tensors, "folder": path, "layout": "gguf", "recipe": "mxfp4",
                                     "config": folder, **options})
        assert "\n" not in str(caught.value)
    assert not list(path.parent.iterdir())
