# SPDX-License-Identifier: Apache-2.0
"""h5py: every dtype in both byte orders, chunks and filters, layouts, versions of the format."""
import harness

np, h5py = harness.need("numpy", "h5py")
from arrays import DTYPES, SHAPES, bits, expected  # noqa: E402  (needs NumPy)

here = harness.scratch()
ways = {"plain": {}, "chunked": {"chunks": True}, "gzip": {"compression": "gzip"},
        "shuffled": {"compression": "gzip", "shuffle": True}, "checked": {"fletcher32": True},
        "resizable": {"maxshape": "free"}}


def fill(file, wanted):
    for code in DTYPES:
        if code.startswith("c"):
            continue
        for order in "<>":
            for shape in SHAPES:
                array = bits(np.dtype(code).newbyteorder(order), shape)
                for way, options in ways.items():
                    if options and (not shape or 0 in shape):
                        continue
                    if "maxshape" in options:
                        options = {"maxshape": (None,) * len(shape)}
                    size = "x".join(map(str, shape)) or "scalar"
                    name = f"{code}/{'big' if order == '>' else 'little'}/{size}.{way}"
                    file.create_dataset(name, data=array, **options)
                    wanted[name] = expected(array)
    # Never written: contains the fill value.
    file.create_dataset("unwritten", (5, 7), "<f4")
    wanted["unwritten"] = expected(np.zeros((5, 7), "<f4"))
    file.create_dataset("filled", (500, 70), "<i2", chunks=(64, 64), fillvalue=-3)
    file["filled"][100:200, 10:20] = 7
    wanted["filled"] = expected(file["filled"][()])
    file["second name"] = file["unwritten"]  # a hard link is a name like the first
    wanted["second name"] = wanted["unwritten"]


# Newer versions of the format than 1.10 need a newer library than many systems have.
for version in ["earliest", "v110"]:
    for block in [0, 1024]:
        wanted = {}
        path = here / f"{version}_{block}.h5"
        with h5py.File(path, "w", libver=(version, "v110"), userblock_size=block) as file:
            fill(file, wanted)
        harness.check(path, wanted)

# Missing data and data that are not numbers are listed with the reason.
with h5py.File(here / "others.h5", "w") as file:
    file["text"] = "text"
    file["record"] = np.zeros(2, [("x", "<f4"), ("y", "<i4")])
    file["soft"] = h5py.SoftLink("/text")
    file["elsewhere"] = h5py.ExternalLink("/etc/passwd", "/x")
    file.create_group("loop")["again"] = file["/"]
harness.check(here / "others.h5",
              {"text": harness.Expected("OTHER", (), note="text"),
               "record": harness.Expected("OTHER", (), note="records"),
               "soft": harness.Expected("OTHER", (), note="a soft link is not followed"),
               "elsewhere": harness.Expected("OTHER", (), note="another file is not followed")})
harness.finish()
