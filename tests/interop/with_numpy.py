# SPDX-License-Identifier: Apache-2.0
"""NumPy's .npy and .npz: every dtype, both byte orders, both orders of axes, the header versions."""
import harness

np = harness.need("numpy")
from arrays import DTYPES, SHAPES, bits, expected  # noqa: E402  (needs NumPy)

here = harness.scratch()


def layouts(array):
    """The same numbers as they lie in memory in different programs."""
    yield "c", array
    yield "fortran", np.asfortranarray(array)
    if array.ndim > 0:
        yield "reversed", array[::-1]
    if array.ndim > 1:
        yield "transposed", array.T
    if array.ndim > 2:
        yield "permuted", np.moveaxis(array, 0, -1)


arrays = {}
for code in DTYPES:
    for order in "<>":
        for shape in SHAPES:
            for layout, array in layouts(bits(np.dtype(code).newbyteorder(order), shape)):
                size = "x".join(map(str, shape))
                kind = "big" if order == ">" else "little"
                arrays[f"{code}.{kind}.{size}.{layout}"] = array
wanted = {name: expected(array) for name, array in arrays.items()}

np.savez(here / "stored.npz", **arrays)
harness.check(here / "stored.npz", wanted)
np.savez_compressed(here / "deflated.npz", **arrays)
harness.check(here / "deflated.npz", wanted)

# One array per file, one of each dtype; its name is that of the file.
for name in [n for n in arrays if n.endswith("7x33.transposed")] + ["f4.little..c", "f8.big.0.c"]:
    np.save(here / (name + ".npy"), arrays[name])
    harness.check(here / (name + ".npy"), {name: wanted[name]})
for version in [(1, 0), (2, 0), (3, 0)]:
    path = here / f"version{version[0]}.npy"
    with open(path, "wb") as out:
        np.lib.format.write_array(out, arrays["f4.little.7x33.fortran"], version=version)
    harness.check(path, {path.stem: wanted["f4.little.7x33.fortran"]})
mapped = np.lib.format.open_memmap(here / "mapped.npy", "w+", "<f2", (100, 70))
mapped[:] = bits("<f2", (100, 70))
mapped.flush()
harness.check(here / "mapped.npy", {"mapped": expected(np.asarray(mapped))})

# Data that are not numbers are listed with the reason, and never loaded.
np.savez(here / "others.npz", text=np.array(["ab", "c"]), objects=np.array([{}], dtype=object),
         record=np.zeros(2, [("x", "<f4")]), time=np.zeros(2, "<M8[s]"))
harness.check(here / "others.npz",
              {"text": harness.Expected("OTHER", (), note="text"),
               "objects": harness.Expected("OTHER", (), note="Python objects"),
               "record": harness.Expected("OTHER", (), note="records"),
               "time": harness.Expected("OTHER", (), note="M8[s]")})
harness.finish()
