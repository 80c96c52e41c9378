#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes datasets/vectors/eval: small random models of each architecture and what others compute.

    pip install torch transformers safetensors gguf numpy ml_dtypes
    scripts/make-eval-vectors.py datasets/vectors/eval

NAME/config.json and model.safetensors (or NAME/model.gguf) are a model; reference.safetensors has
`ids`, and `nll`, -ln of the probability of each next token by transformers in float64 (its norms and
rotary embeddings are float32). Of `llama` there are also nll.RECIPE and kld.RECIPE by the numpy
program below, in float64 throughout. NAME/gradients.safetensors of GRADIENTS has the gradients of the
mean of `nll` by torch in float64, as float32, of the embedding, the first block, the last norm and the
head: the second block computes alike.

    scripts/make-eval-vectors.py datasets/vectors/eval gradients    # these alone, of the models there
"""

import json
import pathlib
import sys

import gguf
import ml_dtypes
import numpy as np
import torch
import transformers
from safetensors import safe_open
from safetensors.numpy import save_file

TOKENS = 40
COMMON = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, vocab_size=96, max_position_embeddings=64,
              attn_implementation="eager", bos_token_id=1, eos_token_id=2, pad_token_id=0)
ROPE = dict(rope_theta=10000.0, rope_type="default")
LLAMA3 = dict(rope_theta=10000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0,
              high_freq_factor=4.0, original_max_position_embeddings=16)

MODELS = {
    "llama": ("LlamaConfig", dict(rms_norm_eps=1e-5, tie_word_embeddings=True,
                                  rope_parameters=ROPE)),
    "llama3": ("LlamaConfig", dict(rms_norm_eps=1e-5, rope_parameters=LLAMA3)),
    "mistral": ("MistralConfig", dict(rms_norm_eps=1e-5, sliding_window=9, rope_parameters=ROPE)),
    "qwen2": ("Qwen2Config", dict(rms_norm_eps=1e-6, rope_parameters=ROPE)),
    "qwen3": ("Qwen3Config", dict(rms_norm_eps=1e-6, head_dim=16, rope_parameters=ROPE)),
    "olmo2": ("Olmo2Config", dict(rms_norm_eps=1e-6, rope_parameters=ROPE)),
    "gemma3": ("Gemma3TextConfig", dict(
        rms_norm_eps=1e-6, head_dim=16, sliding_window=8, query_pre_attn_scalar=16,
        num_hidden_layers=6, layer_types=["sliding_attention"] * 5 + ["full_attention"],
        rope_parameters={"full_attention": dict(rope_theta=1e6, rope_type="default"),
                         "sliding_attention": ROPE})),
    "mixtral": ("MixtralConfig", dict(rms_norm_eps=1e-5, num_local_experts=4,
                                      num_experts_per_tok=2, sliding_window=None,
                                      rope_parameters=ROPE)),
    "qwen3moe": ("Qwen3MoeConfig", dict(
        rms_norm_eps=1e-6, head_dim=8, num_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=24, norm_topk_prob=True, decoder_sparse_step=1,
        rope_parameters=ROPE)),
}


# Gemma 3 with images, of which a text reaches the text model alone: by the names of checkpoints on
# the Hub, and by those of version 5 of transformers.
VISION = {"gemma3-vision": "language_model.model.", "gemma3-vision5": "model.language_model."}

GRADIENTS = ("llama", "llama3", "qwen2", "qwen3", "mixtral", "qwen3moe")


def log_softmax(z):
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def nll_of(log_p, ids):
    return -log_p[np.arange(len(ids) - 1), ids[1:]]


def save_model(folder, model, config):
    """The weights as bfloat16; experts apart, as checkpoints of these models have them."""
    tensors = {}
    for name, value in model.state_dict().items():
        if config.tie_word_embeddings and name == "lm_head.weight":
            continue
        tensors[name] = value
    apart = {}
    for name, value in tensors.items():
        if name.endswith("experts.gate_up_proj"):
            base = name.removesuffix("gate_up_proj")
            for e, both in enumerate(value):
                gate, up = both.chunk(2, dim=0)
                words = ("w1", "w3") if config.model_type == "mixtral" else ("gate_proj", "up_proj")
                for word, part in zip(words, (gate, up)):
                    apart[f"{base}{e}.{word}.weight"] = part
        elif name.endswith("experts.down_proj"):
            base = name.removesuffix("down_proj")
            word = "w2" if config.model_type == "mixtral" else "down_proj"
            for e, part in enumerate(value):
                apart[f"{base}{e}.{word}.weight"] = part
        else:
            apart[name] = value
    if config.model_type == "mixtral":
        apart = {k.replace(".mlp.", ".block_sparse_moe."): v for k, v in apart.items()}
    arrays = {k: v.to(torch.float32).numpy().astype(ml_dtypes.bfloat16) for k, v in apart.items()}
    save_file(arrays, folder / "model.safetensors")
    return {k: v.astype(np.float32) for k, v in arrays.items()}


def make(name, out):
    kind, more = MODELS[name]
    torch.manual_seed(sum(map(ord, name)))
    config = getattr(transformers, kind)(**(COMMON | more))
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation="eager", experts_implementation="eager")
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.dim() == 1 and "bias" not in key:
                offset = 0.0 if name == "gemma3" else 1.0
                p.copy_(offset + 0.3 * torch.randn_like(p))
            else:
                p.copy_((0.3 if p.dim() > 1 else 0.5) * torch.randn_like(p))
            p.copy_(p.to(torch.bfloat16).to(p.dtype))
    model = model.double().eval()
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    text = config.to_dict()
    text["architectures"] = [type(model).__name__]
    (folder / "config.json").write_text(json.dumps(text, indent=1, sort_keys=True) + "\n")
    arrays = save_model(folder, model, config)
    ids = np.random.default_rng(7).integers(3, COMMON["vocab_size"], TOKENS).astype(np.int32)
    with torch.no_grad():
        logits = model(torch.tensor(ids[None].astype(np.int64))).logits[0].double().numpy()
    reference = {"ids": ids, "nll": nll_of(log_softmax(logits), ids)}
    if name == "llama":
        reference |= quantized_figures(arrays, ids)
    save_file(reference, folder / "reference.safetensors", {
        "transformers": transformers.__version__, "torch": torch.__version__})
    if name in ("llama", "gemma3", "qwen3moe"):
        write_gguf(out / f"{name}-gguf", name, config, arrays)
        save_file({k: reference[k] for k in ("ids", "nll")},
                  out / f"{name}-gguf" / "reference.safetensors",
                  {"transformers": transformers.__version__, "torch": torch.__version__})


def make_vision(out):
    torch.manual_seed(11)
    text = COMMON | MODELS["gemma3"][1] | dict(
        num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"])
    vision = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
                  image_size=8, patch_size=4)
    config = transformers.Gemma3Config(text_config=text, vision_config=vision,
                                       mm_tokens_per_image=4, image_token_index=95,
                                       boi_token_index=94, eoi_token_index=93)
    model = transformers.Gemma3ForConditionalGeneration._from_config(
        config, attn_implementation="eager")
    with torch.no_grad():
        for p in model.parameters():
            p.copy_((0.3 * torch.randn_like(p)).to(torch.bfloat16).to(p.dtype))
    model = model.double().eval()
    ids = np.random.default_rng(7).integers(3, 90, TOKENS).astype(np.int32)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor(ids[None].astype(np.int64))).logits[0].numpy()
    for name, prefix in VISION.items():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(
            json.dumps(config.to_dict(), indent=1, sort_keys=True) + "\n")
        tensors = {}
        for key, value in model.state_dict().items():
            key = key.replace("model.language_model.", prefix)
            if prefix.startswith("language_model"):
                key = key.removeprefix("model.")
            if not key.endswith("lm_head.weight"):  # tied
                tensors[key] = value.float().numpy().astype(ml_dtypes.bfloat16)
        save_file(tensors, folder / "model.safetensors")
        save_file({"ids": ids, "nll": nll_of(log_softmax(logits), ids)},
                  folder / "reference.safetensors",
                  {"transformers": transformers.__version__, "torch": torch.__version__})


def as_stored(name, key, x):
    """The tensors of a parameter by their names in files, where experts are not stacked."""
    if ".mlp." in key and name == "mixtral":
        key = key.replace(".mlp.", ".block_sparse_moe.")
    if ".experts." not in key:
        return {key: x}
    stem, _, what = key.rpartition(".")
    parts = {"down_proj": x} if what == "down_proj" else dict(
        zip(("gate_proj", "up_proj"), np.split(x, 2, axis=1)))
    names = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"} if name == "mixtral" else {}
    return {f"{stem}.{e}.{names.get(part, part)}.weight": np.ascontiguousarray(one)
            for part, stack in parts.items() for e, one in enumerate(stack)}


def make_gradients(name, out):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        out / name, attn_implementation="eager", dtype=torch.float64)
    if model.config.model_type in ("mixtral", "qwen3_moe"):
        model.set_experts_implementation("eager")  # the others have no float64
    with safe_open(out / name / "reference.safetensors", "numpy") as file:
        ids = torch.tensor(file.get_tensor("ids").astype(np.int64))
    logits = model(ids[None, :-1]).logits[0]
    torch.nn.functional.cross_entropy(logits, ids[1:]).backward()
    kept = {}
    for key, p in model.named_parameters():
        if ".layers." not in key or ".layers.0." in key:
            kept |= as_stored(name, key, p.grad.float().numpy())
    save_file(kept, out / name / "gradients.safetensors", {
        "transformers": transformers.__version__, "torch": torch.__version__})


# A numpy program of the llama model and of three recipes, independent of the toolkit.

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def to_e2m1(x):
    """Nearest, ties to the even code, saturating."""
    a = np.minimum(np.abs(x), 6.0)
    d = np.abs(a[..., None] - E2M1)
    best = d.min(axis=-1, keepdims=True)
    code = np.where(d == best, np.arange(8) % 2 * 100 + np.arange(8), 1000).argmin(axis=-1)
    return np.copysign(E2M1[code], x)


def to_e4m3(x):
    """Nearest, ties to even, saturating. (ml_dtypes rounds float64 to float32 first.)"""
    a = np.minimum(np.abs(x), 448.0)
    unit = np.exp2(np.maximum(np.frexp(a)[1] - 1, -6) - 3.0)
    return np.copysign(np.minimum(np.rint(a / unit) * unit, 448.0), x)


def blocks(x, n):
    pad = -x.shape[-1] % n
    y = np.pad(x, [(0, 0), (0, pad)])
    return y.reshape(x.shape[0], -1, n)


def unblocked(y, x):
    return y.reshape(x.shape[0], -1)[:, : x.shape[1]]


def mxfp4_even(x):
    b = blocks(x, 32)
    amax = np.abs(b).max(axis=-1).astype(np.float32)
    exponent = ((amax.view(np.uint32) + (1 << 21)) >> 23).astype(np.int64) - 127 - 2
    s = np.exp2(np.where(amax == 0, -127, exponent).astype(np.float64))[..., None]
    return unblocked(s * to_e2m1(b / s), x)


def mxfp8_rceil(x):
    b = blocks(x, 32)
    amax = np.abs(b).max(axis=-1).astype(np.float64)
    with np.errstate(divide="ignore"):
        exponent = np.where(amax == 0, -127, np.ceil(np.log2(amax / 448)))
    exponent = np.where(np.exp2(exponent) * 448 < amax, exponent + 1, exponent)
    s = np.exp2(exponent)[..., None]
    return unblocked(s * to_e4m3(b / s), x)


def nvfp4(x):
    g = np.float64(np.float32(np.abs(x).max() / 2688))
    b = blocks(x, 16)
    s = to_e4m3(np.abs(b).max(axis=-1) / (6 * g))[..., None] * g
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(s == 0, 0.0, to_e2m1(np.where(s == 0, 0.0, b / s)))
    return unblocked(s * q, x)


RECIPES = {"mxfp4:scale=even": mxfp4_even, "mxfp8:scale=rceil": mxfp8_rceil, "nvfp4": nvfp4}


def forward(w, ids, weights, inputs):
    d, heads, kv, size, eps = 32, 4, 2, 8, 1e-5
    norm = lambda h, g: h / np.sqrt((h * h).mean(axis=-1, keepdims=True) + eps) * g.astype(float)
    lin = lambda x, name: x @ weights(w[name + ".weight"].astype(np.float64)).T
    angle = np.arange(len(ids))[:, None] * 10000.0 ** (-2.0 * np.arange(size // 2) / size)

    def turned(x):
        a, b = x[..., : size // 2], x[..., size // 2:]
        c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
        return np.concatenate([a * c - b * s, b * c + a * s], axis=-1)

    h = w["model.embed_tokens.weight"][ids].astype(np.float64)
    for i in range(2):
        at = f"model.layers.{i}."
        x = inputs(norm(h, w[at + "input_layernorm.weight"]))
        q = turned(lin(x, at + "self_attn.q_proj").reshape(-1, heads, size))
        k = turned(lin(x, at + "self_attn.k_proj").reshape(-1, kv, size))
        v = lin(x, at + "self_attn.v_proj").reshape(-1, kv, size)
        o = np.empty((len(ids), heads, size))
        for a in range(heads):
            z = q[:, a] @ k[:, a // 2].T / np.sqrt(size)
            z[np.triu_indices(len(ids), 1)] = -np.inf
            o[:, a] = np.exp(log_softmax(z)) @ v[:, a // 2]
        h = h + lin(inputs(o.reshape(len(ids), -1)), at + "self_attn.o_proj")
        x = inputs(norm(h, w[at + "post_attention_layernorm.weight"]))
        g = lin(x, at + "mlp.gate_proj")
        u = g / (1 + np.exp(-g)) * lin(x, at + "mlp.up_proj")
        h = h + lin(inputs(u), at + "mlp.down_proj")
    return log_softmax(norm(h, w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T.astype(float))


def quantized_figures(w, ids):
    same = lambda x: x
    base = forward(w, ids, same, same)
    out = {"nll.base": nll_of(base, ids)}
    for name, quantize in RECIPES.items():
        for kind, inputs in (("w", same), ("wa", lambda x: quantize(x.astype(np.float32)
                                                                    .astype(np.float64)))):
            log_q = forward(w, ids, quantize, inputs)
            out[f"nll.{kind}.{name}"] = nll_of(log_q, ids)
            out[f"kld.{kind}.{name}"] = (np.exp(base) * (base - log_q)).sum(axis=-1)[:-1]
    return out


def write_gguf(folder, name, config, arrays):
    """As llama.cpp's converter: q and k of llama permuted, 1 added to gains of gemma3, experts
    stacked."""
    folder.mkdir(parents=True, exist_ok=True)
    arch = {"llama": "llama", "gemma3": "gemma3", "qwen3moe": "qwen3moe"}[name]
    to = gguf.GGUFWriter(folder / "model.gguf", arch)
    to.add_context_length(config.max_position_embeddings)
    to.add_embedding_length(config.hidden_size)
    to.add_block_count(config.num_hidden_layers)
    to.add_feed_forward_length(config.intermediate_size)
    to.add_head_count(config.num_attention_heads)
    to.add_head_count_kv(config.num_key_value_heads)
    to.add_layer_norm_rms_eps(config.rms_norm_eps)
    size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if name == "gemma3":
        to.add_rope_freq_base(1e6)
        to.add_sliding_window(config.sliding_window)
    else:
        to.add_rope_freq_base(10000.0)
    if name != "llama":
        to.add_key_length(size)
        to.add_value_length(size)
    if name == "qwen3moe":
        to.add_expert_count(config.num_experts)
        to.add_expert_used_count(config.num_experts_per_tok)
        to.add_expert_feed_forward_length(config.moe_intermediate_size)
    words = {"embed_tokens": "token_embd", "lm_head": "output", "model.norm": "output_norm",
             "input_layernorm": "attn_norm", "q_proj": "attn_q", "k_proj": "attn_k",
             "v_proj": "attn_v", "o_proj": "attn_output", "q_norm": "attn_q_norm",
             "k_norm": "attn_k_norm", "gate_proj": "ffn_gate", "up_proj": "ffn_up",
             "down_proj": "ffn_down", "pre_feedforward_layernorm": "ffn_norm",
             "post_feedforward_layernorm": "post_ffw_norm", "mlp.gate": "ffn_gate_inp",
             "post_attention_layernorm": "post_attention_norm" if name == "gemma3" else "ffn_norm"}
    stacks = {}
    for key, value in arrays.items():
        stem = key.removesuffix(".weight")
        parts = stem.split(".")
        word = words.get(stem) or words.get(".".join(parts[-2:])) or words[parts[-1]]
        layer = f"blk.{parts[2]}." if "layers" in parts else ""
        if "experts" in parts:
            stacks.setdefault(f"{layer}{word}_exps.weight", []).append(value)
            continue
        if name == "llama" and word in ("attn_q", "attn_k"):
            heads = config.num_attention_heads if word == "attn_q" else config.num_key_value_heads
            value = value.reshape(heads, 2, -1, value.shape[1]).swapaxes(1, 2).reshape(value.shape)
        if name == "gemma3" and value.ndim == 1:
            value = value + 1
        add(to, f"{layer}{word}.weight", value)
    for key, values in stacks.items():
        add(to, key, np.stack(values))
    to.write_header_to_file()
    to.write_kv_data_to_file()
    to.write_tensors_to_file()
    to.close()


def add(to, name, value):
    if value.ndim == 1:
        to.add_tensor(name, value.astype(np.float32))
    else:
        raw = value.astype(ml_dtypes.bfloat16).view(np.uint8)
        to.add_tensor(name, raw, raw_dtype=gguf.GGMLQuantizationType.BF16)


if __name__ == "__main__":
    if sys.argv[2:] != ["gradients"]:
        for each in MODELS:
            make(each, pathlib.Path(sys.argv[1]))
        make_vision(pathlib.Path(sys.argv[1]))
    for each in GRADIENTS:
        make_gradients(each, pathlib.Path(sys.argv[1]))
