#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records labels of the quantized teacher of Su et al. for `mx train proxy --teacher quantized`.

    scripts/make-teacher-vectors.py CLONE datasets/vectors/teacher

CLONE is KempnerInstitute/systems-scaling at 99d244a, whose code is run unchanged on the CPU, without its modules for
logging and YAML. Needs torch and numpy. Of an existing file, takes inputs and weights, compares the labels, and exits
with 1 if a bit differs.
"""
import json
import pathlib
import struct
import sys
import types

import numpy
import torch

SEED, WIDTH, DEPTH, BATCH = 1337, 64, 2, 64
E4M3, E2M3, E2M1 = "fp8_e4m3", "fp6_e2m3", "fp4_e2m1"
# FILE: label, activation, formats of weights and activations, exponent bump.
FILES = {
    "mlp": [("e4m3", "gelu", E4M3, E4M3, False), ("e2m3", "gelu", E2M3, E2M3, False),
            ("e2m1", "gelu", E2M1, E2M1, False), ("bump_exp", "gelu", E4M3, E4M3, True),
            ("bf16_act", "gelu", E4M3, "bfloat16", False), ("relu", "relu", E4M3, E4M3, False)],
    "swiglu": [("e4m3", "swiglu", E4M3, E4M3, False)],
}


def published(clone):
    for name in ("wandb", "yaml"):
        sys.modules[name] = types.ModuleType(name)
    sys.path[:0] = [str(clone / "olmo"), str(clone / "olmo/synthetic")]
    import student_teacher
    return student_teacher


def weights(teacher):
    names = [f"teacher.{i}.{fc}.weight" for i in range(DEPTH) for fc in ("fc1", "fc2")]
    return dict(zip(names, teacher.parameters()))


def inputs(teacher):
    """One batch, half of whose rows are large, and the teacher's weights."""
    scale = torch.tensor([2.0 ** (i % 8 if i >= BATCH // 2 else 0) for i in range(BATCH)])
    return {"x": torch.randn(1, BATCH, WIDTH) * scale[:, None], **weights(teacher)}


def labels(code, teachers, cases, tensors):
    made = {}
    for case, activation, w, a, bump in cases:
        for name, p in weights(teachers[activation]).items():
            p.copy_(tensors[name])
        specs = {"w_elem_format": w, "a_elem_format": a, "block_size": 32, "scale_bits": 8, "custom_cuda": False,
                 "quantize_backprop": True, "bfloat": 16, "bump_up_overflow_exponent": bump,
                 "dont_quantize_layernorm": False, "dont_quantize_gelu": False}
        code.mx_mapping.inject_pyt_ops(code.finalize_mx_specs(specs))
        made[f"y.{case}"] = teachers[activation](tensors["x"][0])
    return made


def store(path, tensors):
    header, data = {"__metadata__": {
        "source": "KempnerInstitute/systems-scaling@99d244a (MIT), olmo/mx and olmo/synthetic/student_teacher.py, "
                  f"unchanged; torch {torch.__version__} on a CPU; scripts/make-teacher-vectors.py"}}, b""
    for name, value in tensors.items():
        raw = value.numpy().view(numpy.uint32)
        if name.startswith("y."):  # bfloat16 values
            assert not (raw & 0xffff).any()
            raw = (raw >> 16).astype(numpy.uint16)
        header[name] = {"dtype": "BF16" if raw.itemsize == 2 else "F32", "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + raw.nbytes]}
        data += raw.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def load(path):
    raw = path.read_bytes()
    size = 8 + struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, about in json.loads(raw[8:size]).items():
        if name == "__metadata__":
            continue
        begin, end = about["data_offsets"]
        narrow = about["dtype"] == "BF16"
        bits = numpy.frombuffer(raw[size + begin:size + end], "<u2" if narrow else "<u4").astype(numpy.uint32)
        values = (bits << (16 if narrow else 0)).view(numpy.float32)
        tensors[name] = torch.from_numpy(values.reshape(about["shape"]))
    return tensors


def main():
    code, folder = published(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2])
    torch.manual_seed(SEED)
    # Before the injection, as there: modules made later are other classes.
    teachers = {a: code.make_teacher(WIDTH, WIDTH, DEPTH, a) for a in ("gelu", "relu", "swiglu")}
    different = 0
    for name, cases in FILES.items():
        path = folder / f"{name}.safetensors"
        if not path.exists():
            tensors = inputs(teachers[cases[0][1]])
            store(path, {**tensors, **labels(code, teachers, cases, tensors)})
        tensors = load(path)
        for case, y in labels(code, teachers, cases, tensors).items():
            count = int((y.numpy().view(numpy.uint32) != tensors[case].numpy().view(numpy.uint32)).sum())
            print(f"torch {torch.__version__}: {name} {case}: {count} of {y.numel()} labels differ")
            different += count
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
