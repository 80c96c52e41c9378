# SPDX-License-Identifier: Apache-2.0
"""The narrow floats of ml_dtypes in .npy files, all of their codes, against its own float32."""
import harness

np, ml_dtypes = harness.need("numpy", "ml_dtypes")
from arrays import expected  # noqa: E402  (needs NumPy)

here = harness.scratch()

# NumPy's header contains only the width of most of them: --as gives the type.
FORMATS = [("bfloat16", "BF16", None), ("bfloat16", "BF16", "bf16"),
           ("float8_e5m2", "F8_E5M2", None), ("float8_e4m3fn", "F8_E4M3", "f8_e4m3"),
           ("float8_e4m3fnuz", "F8_E4M3FNUZ", "f8_e4m3fnuz"),
           ("float8_e5m2fnuz", "F8_E5M2FNUZ", "f8_e5m2fnuz"),
           ("float8_e8m0fnu", "F8_E8M0", "f8_e8m0")]
for name, dtype, bare in FORMATS:
    if not hasattr(ml_dtypes, name):
        print("this ml_dtypes has no", name)
        continue
    type_ = np.dtype(getattr(ml_dtypes, name))
    codes = np.arange(1 << 8 * type_.itemsize).astype(f"<u{type_.itemsize}").view(type_)
    for layout, array in [("flat", codes), ("rows", codes.reshape(-1, 32)),
                          ("fortran", np.asfortranarray(codes.reshape(-1, 32)))]:
        path = here / f"{name}_{layout}.npy"
        np.save(path, array)
        harness.check(path, {path.stem: expected(array, dtype)}, bare)
harness.finish()
