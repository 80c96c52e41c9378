# SPDX-License-Identifier: Apache-2.0
"""Packs random codes with AutoGPTQ, GPTQModel, AutoAWQ, compressed-tensors and bitsandbytes themselves,
and writes what their own code for the CPU decodes (see README.md). Scales are made float32 before that,
so that the values are exact products and not rounded to float16.

    TORCHDYNAMO_DISABLE=1 make_library_layouts.py [FOLDER [SEED [INPUTS OUTPUTS]]]

AutoGPTQ and AutoAWQ do not import with current transformers, so their files are loaded one by one."""
import importlib.util
import json
import pathlib
import sys
import types

import numpy as np
import torch
from safetensors.torch import save_file

out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
seed, inputs, outputs = ([int(a) for a in sys.argv[2:]] + [2026, 64, 32][len(sys.argv[2:]):])
rng = np.random.default_rng(seed)
arrays, v2_arrays, planes_arrays, values = {}, {}, {}, {}


def load(package, file):
    """One file of a package, without what the package imports."""
    root = importlib.util.find_spec(package).submodule_search_locations[0]
    spec = importlib.util.spec_from_file_location(pathlib.Path(file).stem, f"{root}/{file}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def group_numbers(groups, ordered):
    numbers = np.repeat(np.arange(groups), inputs // groups)
    return torch.from_numpy(numbers if ordered else rng.permutation(numbers)).to(torch.int32)


def parts(bits, groups, ordered, lowest_zero):
    """Codes [in, out], scales and zero points [groups, out], groups of inputs, and their product."""
    q = torch.from_numpy(rng.integers(0, 1 << bits, (inputs, outputs)))
    z = torch.from_numpy(rng.integers(lowest_zero, 1 << bits, (groups, outputs)))
    s = torch.from_numpy(rng.uniform(0.001, 0.1, (groups, outputs)).astype(np.float16)).float()
    g = group_numbers(groups, ordered)
    linear = torch.nn.Linear(inputs, outputs, bias=False)
    linear.weight.data = (s[g] * (q - z[g])).t().contiguous()
    return linear, s, z, g


def keep(name, module, into, with_groups):
    for key in ["qweight", "qzeros", "scales"] + (["g_idx"] if with_groups else []):
        into[f"{name}.{key}"] = getattr(module, key).detach().contiguous().clone()
    into[f"{name}.scales"] = module.scales.to(torch.float16)
    module.scales = module.scales.float()


# Number of groups, and whether they are in the order of the inputs.
KINDS = [(2, True), (4, False)]

auto_gptq = load("auto_gptq", "nn_modules/qlinear/qlinear_cuda.py")
for bits in 2, 3, 4, 8:
    for groups, ordered in KINDS:
        linear, s, z, g = parts(bits, groups, ordered, 1)
        module = auto_gptq.QuantLinear(bits, inputs // groups, inputs, outputs, False,
                                       weight_dtype=torch.float32)
        module.pack(linear, s.t().contiguous(), z.t().contiguous().float(), g)
        name = f"autogptq.{bits}.{groups}"
        keep(name, module, arrays, not ordered)
        values[name + ".weight"] = module(torch.eye(inputs)).t()

from gptqmodel.nn_modules.qlinear.torch import TorchLinear  # noqa: E402
from gptqmodel.quantization import FORMAT  # noqa: E402
from gptqmodel.utils.model import convert_gptq_v2_to_v1_format_module  # noqa: E402

# Version 2 is what GPTQModel packs; version 1 is converted, and has no zero point of 0. In planes, 2, 4
# and 8 bits are as in version 2.
VARIANTS = [("1", None, (2, 3, 4, 8), arrays), ("2", None, (2, 3, 4, 8), v2_arrays),
            ("p", FORMAT.GPTQ_P, (3, 4, 5, 6, 7), planes_arrays)]
for version, kind, widths, into in VARIANTS:
    for bits in widths:
        for groups, ordered in KINDS:
            linear, s, z, g = parts(bits, groups, ordered, 1 if version == "1" else 0)
            module = TorchLinear(bits, inputs // groups, False, not ordered, inputs, outputs,
                                 register_buffers=True, format=kind)
            module.pack_original(linear, s.t().contiguous(), z.t().contiguous(), g)
            module.post_init()
            name = f"gptqmodel{version}.{bits}.{groups}"
            half = module.scales
            module.scales = half.float()
            values[name + ".weight"] = module.dequantize_weight().t()
            module.scales = half
            if version == "1":
                convert_gptq_v2_to_v1_format_module(
                    module, types.SimpleNamespace(bits=bits, pack_dtype=torch.int32))
            keep(name, module, into, not ordered)

packing = load("awq", "utils/packing_utils.py")
sys.modules["awq"] = types.ModuleType("awq")
for missing in "awq.utils", "awq.utils.module", "awq.utils.utils", "awq.utils.packing_utils":
    sys.modules[missing] = types.ModuleType(missing)
sys.modules["awq.utils.module"].try_import = lambda name: (None, "")
sys.modules["awq.utils.utils"].get_best_device = lambda: "cpu"
sys.modules["awq.utils.packing_utils"].dequantize_gemm = packing.dequantize_gemm
awq_root = pathlib.Path(packing.__file__).parents[1]
spec = importlib.util.spec_from_file_location("gemm", awq_root / "modules/linear/gemm.py")
gemm = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gemm)
for groups in 1, 4:
    linear, s, z, _ = parts(4, groups, True, 0)
    module = gemm.WQLinear_GEMM.from_linear(linear, 4, inputs // groups, scales=s, zeros=z)
    keep(f"awq.{groups}", module, arrays, False)
    values[f"awq.{groups}.weight"] = packing.dequantize_gemm(
        module.qweight, module.qzeros, module.scales, 4, inputs // groups).t()

from compressed_tensors.compressors.pack_quantized.base import PackedQuantizationCompressor  # noqa: E402
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme  # noqa: E402

for bits in 2, 3, 4, 8:
    for groups, symmetric in (1, True), (4, False):
        half = 1 << bits - 1
        q = torch.from_numpy(rng.integers(-half, half, (outputs, inputs)))
        z = torch.from_numpy(rng.integers(-half, half, (outputs, groups)))
        z = torch.zeros_like(z) if symmetric else z
        s = torch.from_numpy(rng.uniform(0.001, 0.1, (outputs, groups)).astype(np.float16)).float()
        each = inputs // groups
        weight = s.repeat_interleave(each, 1) * (q - z.repeat_interleave(each, 1))
        args = QuantizationArgs(num_bits=bits, symmetric=symmetric,
                                strategy="channel" if groups == 1 else "group",
                                group_size=None if groups == 1 else each)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        state = {"weight": weight, "weight_scale": s}
        if not symmetric:
            state["weight_zero_point"] = z.to(torch.int8)
        packed = PackedQuantizationCompressor.compress(state, scheme)
        name = f"packed.{bits}.{groups}"
        arrays.update({f"{name}.{k}": v.contiguous().clone() for k, v in packed.items()})
        decoded = PackedQuantizationCompressor.decompress(dict(packed), scheme)
        values[name + ".weight"] = decoded["weight"]

import bitsandbytes.functional as bnb  # noqa: E402

for kind in "nf4", "fp4":
    for nested in False, True:
        weight = torch.from_numpy(rng.standard_normal((outputs, inputs)).astype(np.float32))
        codes, state = bnb.quantize_4bit(weight, blocksize=64, compress_statistics=nested,
                                         quant_type=kind)
        name = f"bnb.{kind}{'.nested' if nested else ''}.weight"
        arrays[name] = codes
        for key, value in state.as_dict(packed=True).items():
            arrays[f"{name}.{key}"] = value
        values[name] = bnb.dequantize_4bit(codes, state)

out.mkdir(exist_ok=True)
whole = {k: v.detach().float().contiguous() for k, v in values.items()}
save_file(arrays, out / "library_layouts.safetensors")
save_file(whole, out / "library_layouts_values.safetensors")
for kind, content in ("gptq_v2", v2_arrays), ("gptq_p", planes_arrays):
    (out / kind).mkdir(exist_ok=True)
    save_file(content, out / kind / "model.safetensors")
    config = {"quant_method": "gptq", "checkpoint_format": kind}
    (out / kind / "quantize_config.json").write_text(json.dumps(config) + "\n")
