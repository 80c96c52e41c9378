#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Evaluates a GGUF model with llama.cpp and with `mx eval`, one thread each, in turns: largest
differences of the log-likelihoods, and tokens per second of the best pass, reading the
file left out.

llama.cpp computes with 8-bit activations on quantized weights, so both get the model decoded to F32,
made here. Cache in F32, no flash attention; the logits of every position. Needs a Python with numpy,
gguf, xllamacpp for the library and llama-cpp-py-sync for its declarations, which must fit each other: the
largest difference tells."""

import argparse
import importlib.metadata
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gguf
import numpy
import xllamacpp
from llama_cpp_py_sync import _cffi_bindings

SOURCE = Path(__file__).resolve().parents[1]


def decode(model, to):
    """Writes the model with every tensor as F32 and the same metadata."""
    reader = gguf.GGUFReader(model)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(to, architecture)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        writer.add_key_value(name, field.contents(), kind,
                             field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    for t in reader.tensors:
        values = gguf.dequantize(t.data, t.tensor_type).astype(numpy.float32)
        writer.add_tensor(t.name, values.reshape([int(n) for n in reversed(t.shape)]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class LlamaCpp:
    def __init__(self, model, tokens):
        self.ffi = _cffi_bindings.get_ffi()
        # The library of xllamacpp, which runs on older systems than that of the declarations.
        self.lib = self.ffi.dlopen(str(next(Path(xllamacpp.__file__).parent.glob("*.so"))))
        self.quiet = self.ffi.callback("void(int, const char *, void *)", lambda *_: None)
        self.lib.llama_log_set(self.ffi.cast("ggml_log_callback", self.quiet), self.ffi.NULL)
        self.lib.llama_backend_init()
        self.model = self.lib.llama_model_load_from_file(str(model).encode(), self.lib.llama_model_default_params())
        if self.model == self.ffi.NULL:
            sys.exit(f"llama.cpp cannot load {model}")
        p = self.lib.llama_context_default_params()
        p.n_ctx = p.n_batch = p.n_ubatch = len(tokens)
        p.n_outputs_max = len(tokens)
        p.n_threads = p.n_threads_batch = 1
        p.type_k = p.type_v = self.lib.GGML_TYPE_F32
        p.flash_attn_type = self.lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self.context = self.lib.llama_init_from_model(self.model, p)
        self.vocabulary = self.lib.llama_vocab_n_tokens(self.lib.llama_model_get_vocab(self.model))
        self.tokens = tokens

    def run(self):
        """(seconds of one pass, -ln of each next token's probability)."""
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.context), True)
        count = len(self.tokens)
        batch = self.lib.llama_batch_init(count, 0, 1)
        batch.n_tokens = count
        for i, token in enumerate(self.tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = int(token), i, 1, 1
            batch.seq_id[i][0] = 0
        start = time.monotonic()
        if self.lib.llama_decode(self.context, batch) != 0:
            sys.exit("llama.cpp does not decode")
        logits = self.lib.llama_get_logits(self.context)
        seconds = time.monotonic() - start
        buffer = self.ffi.buffer(logits, 4 * count * self.vocabulary)
        x = numpy.frombuffer(buffer, numpy.float32).reshape(count, -1)[:-1].astype(float)
        top = x.max(axis=1)
        nll = top + numpy.log(numpy.exp(x - top[:, None]).sum(axis=1)) - x[numpy.arange(count - 1), self.tokens[1:]]
        self.lib.llama_batch_free(batch)
        return seconds, nll


def mx_json(*words):
    return json.loads(subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True).stdout)


def mx_seconds(mx, model, ids):
    start = time.monotonic()
    mx_json(mx, "eval", model, "--tokens", ids, "--threads", 1, "--json", "-")
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a GGUF file")
    parser.add_argument("tokens", type=Path, help="ids.npy, 512 tokens or more")
    parser.add_argument("--mx", type=Path, default=SOURCE / "build/release/mx")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    tokens = numpy.load(options.tokens)[:512]
    if len(tokens) < 512:
        sys.exit(f"{options.tokens}: {len(tokens)} tokens, 512 are needed")
    with tempfile.TemporaryDirectory() as folder:
        model, ids = Path(folder, "decoded.gguf"), Path(folder, "ids.npy")
        decode(options.model, model)
        two = Path(folder, "two.npy")
        numpy.save(ids, tokens.astype(numpy.int32))
        numpy.save(two, tokens[:2].astype(numpy.int32))
        mine = mx_json(options.mx, "eval", model, "--tokens", ids, "--per-token", "--json", "-")
        other = LlamaCpp(model, tokens)
        best_other = best_mine = best_read = float("inf")
        for _ in range(options.rounds):
            seconds, nll = other.run()
            best_other = min(best_other, seconds)
            best_mine = min(best_mine, mx_seconds(options.mx, model, ids))
            best_read = min(best_read, mx_seconds(options.mx, model, two))
        nll_mine = numpy.array(mine["per_token"]["nll_base"])
    print(f"llama.cpp of xllamacpp {importlib.metadata.version('xllamacpp')}: {other.ffi.string(other.lib.llama_print_system_info()).decode().strip()}")
    print(f"perplexity: llama.cpp {numpy.exp(nll.mean()):.6f}, mx {numpy.exp(nll_mine.mean()):.6f}; "
          f"largest difference of a token's -ln p {abs(nll - nll_mine).max():.2g}")
    best_mine -= best_read
    print(f"tokens/s, one thread: llama.cpp {512 / best_other:.1f}, mx {510 / best_mine:.1f} "
          f"(without {best_read:.2f} s for the file and two tokens), ratio {best_other / best_mine * 510 / 512:.2f}")


if __name__ == "__main__":
    main()
