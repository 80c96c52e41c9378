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
    for options, said in (({"layout": "modelop"}, "modelopt"), ({"layout": "gguf"}, "layout"),
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
