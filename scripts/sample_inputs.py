# SPDX-License-Identifier: Apache-2.0
"""Small files in the formats that mx reads, made with the standard library alone: every dtype,
values at the edges of every rule, quantized layouts, and files that are damaged. The same bytes
every time."""

import io
import json
import random
import struct
import zipfile
from pathlib import Path

WIDTH = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8,
         "U32": 4, "U16": 2, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1}


def count(shape):
    n = 1
    for extent in shape:
        n *= extent
    return n


def f32(values):
    return struct.pack(f"<{len(values)}f", *values)


def bf16(values):
    """The upper halves of float32: rounded toward zero."""
    return b"".join(struct.pack("<f", x)[2:] for x in values)


def f16(values):
    return struct.pack(f"<{len(values)}e", *values)


def normal(n, seed, scale=1.0):
    draw = random.Random(seed)
    return [draw.gauss(0.0, scale) for _ in range(n)]


def pattern(n, seed):
    """n bytes in which every bit is drawn."""
    return random.Random(seed).randbytes(n)


def special_values():
    """float32 in rows of 32: what scale rules, roundings and NaN handling depend on."""
    def bits(*patterns):
        return list(struct.unpack(f"<{len(patterns)}f", struct.pack(f"<{len(patterns)}I", *patterns)))

    def row(*values):
        return (list(values) * 32)[:32]

    largest, tiny = bits(0x7F7FFFFF, 0x00000001)
    inf, nan = float("inf"), float("nan")
    rows = [
        row(0.0), row(-0.0), row(0.0, -0.0), row(1.0), row(1.0, -1.0),
        row(1.0, 2.0, nan), row(1.0, 2.0, inf), row(1.0, -inf, 3.0), row(nan), row(inf, nan, 1.0),
        row(*bits(0xFFC00001, 0x7F800001, 0x3F800000)),
        row(tiny, 0.0), row(tiny * 3, -tiny, tiny * 100), row(2.0**-126, 2.0**-127), row(1e-40, 1.0),
        row(2.0**-149, 2.0**127), row(largest), row(largest, -1.0), row(2.0**127, 2.0**120, 1.0),
        [2.0**k for k in range(-16, 16)], [2.0**-k for k in range(100, 132)],
        [k / 8 for k in range(-16, 16)], [k / 4 + 0.125 for k in range(32)],
        [k / 16 for k in range(32)], [6 * k / 31 for k in range(32)], [448 * k / 31 for k in range(32)],
        row(0.9921875, 0.98828125, 0.99), row(1.99, 1.98, -1.97), row(960.0, 957.0),
        row(1000.0, 1e-3, -1e-4, 2e-5), [100.0] + [0.01 * k for k in range(31)],
    ]
    # Largest magnitudes at the thresholds of the rules, one neighbour either side.
    for x in (1.0, 1.25, 1.5, 1.625, 1.75, 1.8125, 1.875, 1.9375, 1.96875, 6.0, 7.0, 7.5, 28.0, 30.0,
              448.0, 464.0, 480.0, 57344.0, 61440.0):
        word = struct.unpack("<I", struct.pack("<f", x))[0]
        for step in (-1, 0, 1):
            top = bits(word + step)[0]
            rows.append([top] + [top * k / 37 * (-1) ** k for k in range(31)])
    return [x for one in rows for x in one]


def safetensors(tensors, metadata=None):
    """tensors: {name: (dtype, shape, bytes)}"""
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        assert len(data) == WIDTH[dtype] * count(shape), name
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values())


def npy(descr, shape, data, fortran=False):
    text = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}"
    text += " " * (63 - (10 + len(text)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def npz(arrays, compression):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in arrays.items():
            entry = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
            entry.compress_type = compression
            archive.writestr(entry, data)
    return file.getvalue()


def write_safetensors(to):
    special = special_values()
    rows = len(special) // 32
    (to / "special.safetensors").write_bytes(safetensors({
        "rows": ("F32", (rows, 32), f32(special)),
        "layers.0.norm.weight": ("F32", (len(special),), f32(special)),
        "odd.weight": ("F32", (7, 45), f32(normal(315, 1))),
        "cube": ("BF16", (3, 10, 36), bf16(normal(1080, 2, 3.0))),
        "wide.bias": ("F16", (130,), f16(normal(130, 3, 0.02))),
        "cluster": ("BF16", (4, 64), bf16([1.5 + k % 64 / 128 for k in range(256)])),
    }))
    (to / "weights.safetensors").write_bytes(safetensors({
        "model.layers.0.mlp.up_proj.weight": ("F32", (40, 96), f32(normal(3840, 4, 0.05))),
        "model.layers.1.mlp.up_proj.weight": ("BF16", (33, 64), bf16(normal(2112, 5, 0.02))),
        "model.layers.1.input_layernorm.weight": ("BF16", (64,), bf16([1 + x for x in normal(64, 6, 0.01)])),
    }))
    (to / "dtypes.safetensors").write_bytes(safetensors({
        **{f"drawn.{dtype}": (dtype, (6, 40), pattern(240 * WIDTH[dtype], 7) if dtype != "BOOL" else
                              bytes(b & 1 for b in pattern(240, 7))) for dtype in WIDTH},
        "scalar": ("F32", (), f32([1.5])), "empty": ("F32", (0, 4), b""), "one": ("BF16", (1,), bf16([3.0])),
        "long": ("F32", (1, 1, 70, 1), f32(normal(70, 8))),
    }, {"made by": "scripts/sample_inputs.py"}))
    (to / "odd.safetensors").write_bytes(safetensors({
        "\x1b[31m|`a,\"b\n<i>": ("F32", (4,), f32([float("nan"), float("inf"), 1.0, 2.0])),
        "größe": ("F32", (2, 2), f32([1, 2, 3, 4])),
    }))
    (to / "shard1.safetensors").write_bytes(safetensors(
        {"a.weight": ("F32", (4, 32), f32(normal(128, 9)))}))
    (to / "shard2.safetensors").write_bytes(safetensors(
        {"b.weight": ("BF16", (2, 64), bf16(normal(128, 10)))}))
    index = {"metadata": {"total_size": 768},
             "weight_map": {"a.weight": "shard1.safetensors", "b.weight": "shard2.safetensors"}}
    (to / "model.safetensors.index.json").write_text(json.dumps(index))
    index["weight_map"]["c.weight"] = "shard3.safetensors"
    (to / "missing.safetensors.index.json").write_text(json.dumps(index))
    # Steps of a training run: a norm whose largest gain approaches the clamp zone of floor, a
    # weight that flips.
    (to / "steps").mkdir()
    for step, gain, moved in (100, 1.5, 4.0), (200, 1.5625, 6.0), (300, 1.625, 4.0), (400, 1.875, 6.0):
        (to / "steps" / f"step{step}.safetensors").write_bytes(safetensors({
            "layers.0.norm.weight": ("BF16", (4,), bf16([1.0, 1.25, 1.25, gain])),
            "layers.0.up.weight": ("BF16", (2, 4), bf16([1, 2, 3, moved, 1, 2, 3, 10 - moved])),
            "layers.0.down.weight": ("F32", (3, 40), f32([x + step / 5000 for x in normal(120, 11)])),
        }))


def write_quantized(to):
    """Codes and scales as checkpoints keep them."""
    scales = bytes([127, 126, 128, 120])
    (to / "quantized.safetensors").write_bytes(safetensors({
        "experts_blocks": ("U8", (1, 4, 16), pattern(64, 20)),
        "experts_scales": ("U8", (1, 4), scales),
        "nv.weight": ("U8", (2, 16), pattern(32, 21)),
        "nv.weight_scale": ("F8_E4M3", (2, 2), bytes([0x38, 0x40, 0x30, 0x7E])),
        "nv.weight_scale_2": ("F32", (), f32([0.5])),
        "mx8.weight": ("F8_E4M3", (2, 64), bytes(b & 0xF7 for b in pattern(128, 22))),
        "mx8.weight_scale": ("U8", (2, 2), scales),
        "tiles.weight": ("F8_E4M3", (130, 140), bytes(b & 0xBF for b in pattern(18200, 23))),
        "tiles.weight_scale_inv": ("F32", (2, 2), f32([0.25, 0.3, 1.5, 2.0])),
        "rows.weight": ("F8_E5M2", (3, 20), bytes(b & 0xBB for b in pattern(60, 24))),
        "rows.weight_scale": ("BF16", (3, 1), bf16([0.5, 1.0, 3.0])),
        "int.weight": ("I8", (3, 20), pattern(60, 25)),
        "int.weight_scale": ("F16", (3, 1), f16([0.5, 0.01, 2.0])),
        "words.weight_packed": ("I32", (2, 8), pattern(64, 26)),
        "words.weight_scale": ("F32", (2, 2), f32([0.1, 0.2, 0.3, 0.4])),
        "words.weight_shape": ("I64", (2,), struct.pack("<2q", 2, 64)),
        "odd_blocks": ("U8", (1, 8), pattern(8, 27)),
        "odd_scales": ("U8", (1,), b"\x7f"),
    }))


def write_arrays(to):
    x, w, dy = normal(24 * 96, 30), normal(40 * 96, 31, 0.1), normal(24 * 40, 32, 1e-3)
    (to / "x.npy").write_bytes(npy("<f4", (24, 96), f32(x)))
    (to / "w.npy").write_bytes(npy("<f4", (40, 96), f32(w)))
    (to / "dy.npy").write_bytes(npy("<f4", (24, 40), f32(dy)))
    (to / "c.npy").write_bytes(npy("<f4", (24, 40), f32(normal(960, 33))))
    (to / "half.npy").write_bytes(npy("<f2", (24, 96), f16(x)))
    (to / "fortran.npy").write_bytes(npy("<f4", (96, 24), f32(x), True))
    (to / "double.npy").write_bytes(npy("<f8", (5, 33), struct.pack("<165d", *normal(165, 34, 1e30))))
    (to / "big_endian.npy").write_bytes(npy(">f4", (5, 33), struct.pack(">165f", *normal(165, 35))))
    (to / "integers.npy").write_bytes(npy("<i4", (5, 33), struct.pack("<165i", *range(-80, 85))))
    (to / "scalar.npy").write_bytes(npy("<f4", (), f32([2.5])))
    (to / "empty.npy").write_bytes(npy("<f4", (0, 3), b""))
    (to / "objects.npy").write_bytes(npy("|O", (2,), bytes(16)))
    cube = npy("<f4", (2, 3, 4, 36), f32(normal(864, 36)))
    (to / "cube.npy").write_bytes(cube)
    arrays = {"cube": cube, "flags": npy("|b1", (6,), bytes([0, 1] * 3)),
              "words": npy("<u2", (256,), struct.pack("<256H", *range(0x3F00, 0x4000)))}
    (to / "stored.npz").write_bytes(npz(arrays, zipfile.ZIP_STORED))
    (to / "deflated.npz").write_bytes(npz(arrays, zipfile.ZIP_DEFLATED))
    # Every 16-bit pattern: all of bf16, all of fp16.
    (to / "patterns.bin").write_bytes(struct.pack("<65536H", *range(65536)))
    (to / "drawn.bin").write_bytes(pattern(1 << 18, 37))


def write_hostile(to):
    good = (to / "weights.safetensors").read_bytes()
    hostile = to / "hostile"
    hostile.mkdir()

    def header(text):
        return struct.pack("<Q", len(text)) + text.encode() + bytes(64)

    files = {
        "empty.safetensors": b"", "liar.safetensors": struct.pack("<Q", 10**12) + b"{}",
        "short.safetensors": good[:len(good) // 2], "cut.safetensors": good[:40],
        "text.safetensors": b"not a checkpoint\n", "json.safetensors": header("{\"a\":"),
        "dtype.safetensors": header('{"a":{"dtype":"F99","shape":[1],"data_offsets":[0,4]}}'),
        "offsets.safetensors": header('{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}}'),
        "beyond.safetensors": header('{"a":{"dtype":"F32","shape":[400],"data_offsets":[0,1600]}}'),
        "overflow.safetensors": header('{"a":{"dtype":"F32","shape":[4294967296,4294967296,4],'
                                       '"data_offsets":[0,64]}}'),
        "overlap.safetensors": header('{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},'
                                      '"b":{"dtype":"F32","shape":[4],"data_offsets":[8,24]}}'),
        "short.npy": (to / "x.npy").read_bytes()[:1000], "magic.npy": b"\x93NUMPX\x01\x00" + bytes(60),
        "shape.npy": npy("<f4", (10**9, 10**9), bytes(16)), "descr.npy": npy("<q9", (2,), bytes(16)),
        "short.npz": (to / "stored.npz").read_bytes()[:500], "zip.npz": b"PK\x03\x04" + bytes(30),
        "index.safetensors.index.json": b'{"weight_map": 3}',
        "results.json": b'{"schema":"mx.analysis/1","results":[', "array.json": b"[1,2,3]",
        "schema.json": b'{"schema":"mx.other/9","results":[]}',
    }
    for name, data in files.items():
        (hostile / name).write_bytes(data)
    for name in ("gguf.gguf", "onnx.onnx", "torch_nested.pt", "torch_old.pt", "h5py.h5", "keras.keras"):
        whole = to / "io" / name
        if whole.exists():
            data = bytearray(whole.read_bytes())
            (hostile / ("short_" + name)).write_bytes(data[:len(data) * 2 // 3])
            for k in range(16, len(data), 97):
                data[k] ^= 0x55
            (hostile / ("flipped_" + name)).write_bytes(data)
    (hostile / "folder").mkdir()


def write_inputs(to, fixtures=None):
    """Everything into the folder `to`; `fixtures` (tests/io/data) becomes its folder io."""
    to = Path(to)
    if fixtures:
        (to / "io").mkdir()
        for file in sorted(Path(fixtures).rglob("*")):
            if file.is_file() and file.suffix != ".py":
                copy = to / "io" / file.relative_to(fixtures)
                copy.parent.mkdir(exist_ok=True)
                copy.write_bytes(file.read_bytes())
    write_safetensors(to)
    write_quantized(to)
    write_arrays(to)
    write_hostile(to)
    (to / "rules.txt").write_text("# limits\nclamp_rate<1% # of all\n\nnorm:rmse<1\n")
