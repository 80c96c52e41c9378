#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what `mx quantize --layout` writes with the libraries that read it, on a CPU.

    pip install torch transformers compressed-tensors accelerate safetensors numpy psutil
    pip install gguf xllamacpp llama-cpp-py-sync       # for --gguf
    scripts/check-layouts.py [--model FOLDER --tokens ids.npy] [--gguf model.gguf] [--mx MX]

compressed-tensors: each weight as its library decompresses it equals the values of `mx quantize` under
the same recipe, and under the tensor scale that the file has, bit for bit (of E4M3 with one, those of
torch); the library gives 4-bit and
MXFP8 weights in bfloat16, so these are rounded likewise, and NVFP4 is also decoded in float32. Then
transformers loads the folder in float32, and -ln p of every token is compared with `mx eval` of it: with
decoded weights, where only NVFP4's differ (transformers has them in bfloat16; with these in float32 they
do not), and with quantized
activations where the configuration says so, whose codes follow from the last bits of float32 sums.
Without --model, a random llama is made.

deepseek and gpt-oss: transformers decodes the folder to the values of `mx quantize`, bit for bit.

gguf: gguf-py decodes each tensor to the values of `mx quantize`, bit for bit, and quantizes to the same
bytes of Q8_0; llama.cpp computes -ln p
of random tokens from the file, where it rounds activations to 8 bits, and from the file decoded to F32,
where it does not; both are compared with `mx eval` of the file."""

import argparse
import importlib
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.quantization import QuantizationScheme
from compressed_tensors.quantization.lifecycle.forward import dequantize
from safetensors.torch import load_file

SOURCE = pathlib.Path(__file__).resolve().parents[1]

# A recipe, the largest difference of -ln p, and its activations in `mx eval`. The library's INT8 scale of
# a token is its largest magnitude over 127.5, not 127.
RECIPES = (
    ("nvfp4:dialect=compressed-tensors", 0.1, None),
    ("mxfp4", 1e-4, None),
    ("mxfp8", 1e-4, None),
    ("e4m3:scale=channel", 1e-4, "e4m3:scale=channel"),
    ("fp8_128x128", 1e-4, "fp8_1x128"),
    ("e4m3:scale=tensor", 1e-4, "e4m3:scale=channel"),
    ("int8:scale=channel", 1e-4, "int8:scale=channel"),
)
MOST_WITH_ACTIVATIONS = 0.02  # of the mean
GGUF_RECIPES = ("mxfp4:dialect=ggml", "nvfp4:dialect=ggml", "nvfp4", "q8_0")


def random_llama(folder):
    torch.manual_seed(1)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=256, intermediate_size=384, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=320, max_position_embeddings=128, rms_norm_eps=1e-5,
        bos_token_id=1, eos_token_id=2, pad_token_id=0))
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.data.mul_(3)
    model.save_pretrained(folder)


def random_gpt_oss(folder):
    torch.manual_seed(2)
    model = transformers.GptOssForCausalLM(transformers.GptOssConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=16, vocab_size=320, num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=128,
        sliding_window=32, pad_token_id=0))
    for name, parameter in model.named_parameters():
        if ".experts." in name:
            parameter.data.normal_(0, 0.1)
    model.to(torch.bfloat16).save_pretrained(folder)


def tensors_of(folder):
    found = {}
    for file in sorted(folder.glob("*.safetensors")):
        found.update(load_file(file))
    return found


def modules_of(stored):
    return [name.removesuffix(".weight_scale") for name in stored if name.endswith(".weight_scale")]


class Check:
    def __init__(self, mx, model, tokens, work):
        self.mx, self.model, self.tokens, self.work = mx, model, tokens, work
        self.failed = False

    def run(self, *words):
        return subprocess.run([self.mx, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout

    def quantized(self, recipe, *more):
        out = self.work / "values.safetensors"
        self.run("quantize", self.model, "-r", recipe, "-o", out, *more)
        return load_file(out)

    def values(self, folder, recipe):
        """The number of weights, and of those that differ."""
        stored = tensors_of(folder)
        group = json.loads((folder / "config.json").read_text())["quantization_config"]["config_groups"]["group_0"]
        scheme = QuantizationScheme(**group)
        library = BaseCompressor.get_value_from_registry(group["format"])
        one_scale = recipe.endswith("scale=tensor")
        mine = None if recipe.startswith("nvfp4") or one_scale else self.quantized(recipe)
        original = tensors_of(self.model) if one_scale else {}
        differ, self.wide = 0, {}
        for module in modules_of(stored):
            parts = {name.rpartition(".")[2]: t for name, t in stored.items() if name.startswith(module + ".")}
            theirs = library.decompress(parts, scheme)["weight"]
            name = module + ".weight"
            if mine is not None:
                want = mine[name]
            elif one_scale:
                scale = parts["weight_scale"]
                want = (original[name].float() / scale).to(torch.float8_e4m3fn).float() * scale
            else:
                outer = parts["weight_global_scale"].item()
                want = self.quantized(f"{recipe},outer=given:{outer!r}", "-t", name)[name]
                packed = parts["weight_packed"]
                codes = unpack_fp4_from_uint8(packed, packed.shape[0], 2 * packed.shape[1], torch.float32)
                wide = dequantize(codes, parts["weight_scale"].float(), args=scheme.weights,
                                  global_scale=parts["weight_global_scale"], dtype=torch.float32)
                differ += not torch.equal(wide, want)
                self.wide[name] = wide
            differ += not torch.equal(theirs, want.to(theirs.dtype))
        return len(modules_of(stored)), differ

    def likelihoods(self, folder, activations, weights=None):
        """-ln p of each token, by mx and by transformers, there with these weights if there are any."""
        words = ["--activations", activations] if activations else []
        result = json.loads(self.run("eval", folder, "--tokens", self.tokens, "--per-token", "--json", "-", *words))
        per_token = result["per_token"]
        mine = np.array(per_token["recipes"][0]["nll"] if activations else per_token["nll_base"])
        # Weights that the library decompresses to bfloat16 at the first pass have no product with float32.
        how = {} if activations else {"quantization_config": transformers.CompressedTensorsConfig(dequantize=True)}
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **how)
        if weights:
            missing, unknown = model.load_state_dict(weights, strict=False)
            assert not unknown and not weights.keys() & missing, (unknown, missing)
        ids = torch.from_numpy(np.load(self.tokens).astype(np.int64))[None]
        with torch.no_grad():
            log_p = torch.log_softmax(model(ids).logits[0].double(), -1).numpy()
        theirs = -log_p[np.arange(ids.shape[1] - 1), ids[0, 1:].numpy()]
        return mine, theirs

    def recipe(self, recipe, most, activations):
        folder = self.work / recipe.replace(":", "-")
        try:
            self.run("quantize", self.model, "-r", recipe, "--layout", "compressed-tensors", "-o", folder)
        except subprocess.CalledProcessError:
            if self.model.parent == self.work:  # ours, which has whole blocks of all
                raise
            print(f"none compressed-tensors {recipe}: the model has no such blocks", flush=True)
            return
        weights, differ = self.values(folder, recipe)
        good, text = weights > 0 and differ == 0, f"{weights} weights, {differ} differ"
        for quantized, limit in ((None, most), (activations, MOST_WITH_ACTIVATIONS)):
            if limit != most and quantized is None:
                continue
            mine, theirs = self.likelihoods(folder, quantized)
            largest = abs(mine - theirs).max()
            good = good and (abs(mine.mean() - theirs.mean()) if quantized else largest) <= limit
            text += (f"; activations {quantized or 'as they are'}: mean -ln p {mine.mean():.6f} (mx), "
                     f"{theirs.mean():.6f} (transformers), a token differs by {largest:.2g} at most")
        if self.wide:  # what remains where its weights are not rounded to bfloat16
            mine, theirs = self.likelihoods(folder, None, self.wide)
            good = good and abs(mine - theirs).max() <= 1e-4
            text += f"; with its weights in float32, a token differs by {abs(mine - theirs).max():.2g} at most"
        self.report(good, f"compressed-tensors {recipe}: {text}")

    def static_inputs(self):
        """FP8 with scales of inputs in the file: transformers rounds inputs under them."""
        recipe, dump, folder = "e4m3:scale=tensor", self.work / "x.safetensors", self.work / "static"
        self.run("eval", self.model, "--tokens", self.tokens, "--dump", "*.x", "-o", dump, "-q")
        self.run("quantize", self.model, "-r", recipe, "--layout", "compressed-tensors", "-o", folder,
                 "--input-scales", dump)
        stored = tensors_of(folder)
        largest = {n.removesuffix(".x"): t.float().abs().max() for n, t in load_file(dump).items()}
        scales = {n.removesuffix(".input_scale"): t for n, t in stored.items() if n.endswith(".input_scale")}
        good = all(bool((largest[n] / 448 <= s * (1 + 1e-6)).all()) for n, s in scales.items())
        ids = torch.from_numpy(np.load(self.tokens).astype(np.int64))[None]
        logits = []
        for plain in (True, False):
            how = {"quantization_config": transformers.CompressedTensorsConfig(dequantize=True)} if plain else {}
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **how)
            for name, module in model.named_modules():
                if plain and name in scales:
                    module.register_forward_pre_hook(lambda _, x, s=scales[name]: (
                        (x[0] / s).clamp(-448, 448).to(torch.float8_e4m3fn).float() * s,))
            with torch.no_grad():
                logits.append(model(ids).logits)
        differ = (logits[0] - logits[1]).abs().max().item()
        self.report(good and scales and differ < 1e-5,
                    f"compressed-tensors {recipe}, static inputs: {len(scales)} scales; a logit differs by {differ:.2g} "
                    "at most from weights and inputs rounded by torch")

    def report(self, good, text):
        self.failed |= not good
        print(f"{'ok  ' if good else 'FAIL'} {text}", flush=True)

    def decoded(self, layout, recipe, config, *more):
        """A folder against the values, of its weights [..., in, out] if `more` transposes them."""
        folder = self.work / layout
        self.run("quantize", self.model, "-r", recipe, "--layout", layout, "-o", folder, *more)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, quantization_config=config,
                                                                  dtype=torch.float32)
        theirs = model.state_dict()
        want = self.quantized(recipe, *more, *(["-t", more[1]] if more else []))
        differ = sum(not torch.equal((theirs[n].transpose(-1, -2) if more else theirs[n]).float(), t.float())
                     for n, t in want.items())
        self.report(differ == 0 and want, f"{layout} {recipe}: {len(want)} tensors, {differ} differ")

    def gguf(self, recipe, llama_cpp, gguf):
        """A GGUF file by gguf-py and llama.cpp."""
        out, decoded = self.work / "out.gguf", self.work / "decoded.gguf"
        self.run("quantize", self.model, "-r", recipe, "--layout", "gguf", "-o", out)
        want = {n: t.numpy() for n, t in self.quantized(recipe).items()} if recipe != "q8_0" else {
            t.name: gguf.quantize(t.data.reshape([int(n) for n in reversed(t.shape)]),
                                  gguf.GGMLQuantizationType.Q8_0)
            for t in gguf.GGUFReader(self.model).tensors if len(t.shape) == 2}
        tensors = {t.name: t for t in gguf.GGUFReader(out).tensors}
        quantized = differ = 0
        scaled = False
        for name, t in tensors.items():
            if t.tensor_type.name == "Q8_0":
                quantized += 1
                differ += not np.array_equal(t.data, want[name])
            if t.tensor_type.name not in ("MXFP4", "NVFP4"):
                continue
            values = gguf.dequantize(t.data, t.tensor_type).reshape([int(n) for n in reversed(t.shape)])
            outer = tensors.get(name.removesuffix(".weight") + ".scale")
            if outer is not None:
                values, scaled = values * outer.data[0], True
            quantized += 1
            differ += not np.array_equal(values, want[name])
        mine = np.array(json.loads(self.run("eval", out, "--tokens", self.tokens, "--per-token", "--json", "-"))
                        ["per_token"]["nll_base"])
        ids = np.load(self.tokens)
        _, theirs = llama_cpp.LlamaCpp(out, ids).run()
        good = quantized > 0 and differ == 0 and abs(mine.mean() - theirs.mean()) < 0.1
        text = (f"gguf {recipe}: {quantized} tensors, {differ} differ; mean -ln p {mine.mean():.6f} (mx), "
                f"{theirs.mean():.6f} (llama.cpp), a token differs by {abs(mine - theirs).max():.2g} at most")
        if not scaled:  # decoding leaves the scale's tensor, which llama.cpp would use again
            llama_cpp.decode(out, decoded)
            _, theirs = llama_cpp.LlamaCpp(decoded, ids).run()
            good = good and abs(mine - theirs).max() < 1e-3
            text += f", {abs(mine - theirs).max():.2g} from the decoded file"
        self.report(good, text)


def check_folders(options, work):
    model, tokens = options.model, options.tokens
    if model is None:
        model, tokens = work / "llama", work / "ids.npy"
        random_llama(model)
        np.save(tokens, np.random.default_rng(3).integers(3, 320, 64).astype(np.int32))
    check = Check(options.mx.resolve(), model, tokens, work)
    for row in RECIPES:
        check.recipe(*row)
    check.static_inputs()
    check.decoded("deepseek", "fp8_128x128", transformers.FineGrainedFP8Config(dequantize=True))
    random_gpt_oss(work / "experts")
    experts = Check(options.mx.resolve(), work / "experts", None, work)
    experts.decoded("gpt-oss", "mxfp4", transformers.Mxfp4Config(dequantize=True), "--transpose", "*.experts.*_proj")
    return check.failed or experts.failed


def check_gguf(options, work):
    import gguf
    llama_cpp = importlib.import_module("compare-llama-cpp")
    model, tokens = work / "model.gguf", work / "ids.npy"
    llama_cpp.decode(options.gguf, model)
    size = min(len(gguf.GGUFReader(model).fields["tokenizer.ggml.tokens"].data), 40000)
    np.save(tokens, np.random.default_rng(5).integers(100, size, 128).astype(np.int32))
    print(", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("gguf", "xllamacpp")))
    check = Check(options.mx.resolve(), model, tokens, work)
    for recipe in GGUF_RECIPES:
        check.gguf(recipe, llama_cpp, gguf)
    return check.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mx", type=pathlib.Path, default=SOURCE / "build/release/mx")
    parser.add_argument("--model", type=pathlib.Path, help="a folder with config.json and safetensors")
    parser.add_argument("--tokens", type=pathlib.Path, help="ids.npy, for --model")
    parser.add_argument("--gguf", type=pathlib.Path, help="a GGUF file, for the layout gguf")
    options = parser.parse_args()
    if (options.model is None) != (options.tokens is None):
        sys.exit("give both of --model and --tokens, or neither")
    print(", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("compressed-tensors", "transformers", "torch")))
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        failed = check_folders(options, work)
        if options.gguf:
            failed |= check_gguf(options, work)
    sys.exit(failed)


if __name__ == "__main__":
    main()
