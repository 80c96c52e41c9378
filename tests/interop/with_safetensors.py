# SPDX-License-Identifier: Apache-2.0
"""The safetensors package: every dtype that it writes."""
import harness

np, safetensors = harness.need("numpy", "safetensors")
from arrays import DTYPES, SHAPES, bits, expected  # noqa: E402  (needs NumPy)

here = harness.scratch()

from safetensors.numpy import save_file  # noqa: E402

# complex128 has no place in the format.
arrays = {f"{code}.{'x'.join(map(str, shape))}": bits("<" + code, shape)
          for code in DTYPES if code != "c16" for shape in SHAPES}
save_file(arrays, here / "numpy.safetensors", metadata={"made": "by safetensors", "": "\x00\n"})
harness.check(here / "numpy.safetensors", {n: expected(a) for n, a in arrays.items()})

# Types that NumPy has not, by the address of their bytes as safetensors.torch hands them over.
NARROW = {"bfloat16": ("BF16", 16), "float8_e4m3fn": ("F8_E4M3", 8), "float8_e5m2": ("F8_E5M2", 8),
          "float8_e4m3fnuz": ("F8_E4M3FNUZ", 8), "float8_e5m2fnuz": ("F8_E5M2FNUZ", 8),
          "float8_e8m0fnu": ("F8_E8M0", 8), "float4_e2m1fn_x2": ("F4", 4)}
for name, (dtype, width) in NARROW.items():
    stored = bits("u1", (6, 32 * width // 8))
    elements = 16 if width == 4 else 32  # the package's F4 is a pair
    try:
        described = safetensors.TensorSpec(dtype=name, shape=[6, elements],
                                           data_ptr=stored.ctypes.data, data_len=stored.nbytes)
        safetensors.serialize_file({"w": described}, here / (name + ".safetensors"))
    except (safetensors.SafetensorError, AttributeError, ValueError) as problem:
        print("this safetensors does not write", name, f"({problem})")
        continue
    harness.check(here / (name + ".safetensors"),
                  {"w": harness.Expected(dtype, (6, 32), stored.tobytes())})

# Unusual names of tensors.
names = ["", ".", "..", "../../etc/passwd", "a\nb", "\x1b[2J", "caf\u00e9", "\u202e", "a" * 5000]
odd = {name: bits("<f4", (3,), seed) for seed, name in enumerate(names)}
save_file(odd, here / "names.safetensors")
harness.check(here / "names.safetensors", {n: expected(a) for n, a in odd.items()})
harness.finish()
