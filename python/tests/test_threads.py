# SPDX-License-Identifier: Apache-2.0
"""How many threads calls use: what is named, libmx.set_num_threads, PyTorch's number, OMP_NUM_THREADS."""
import os
import subprocess
import sys

import pytest

import libmx

SCRIPT = '''
import os, time, numpy as np, libmx
LARGE = np.ones((2048, 2048), np.float32)
def threads():
    """Those of this process, without the one that works for a long call while another waits for signals. A thread that
    has ended may be listed for a moment."""
    return min(len(os.listdir("/proc/self/task")) for _ in range(10) if time.sleep(0.005) is None)
BEFORE = threads()
def made_by(call):
    call()
    return threads() - BEFORE
'''


def run(code, **environment):
    clean = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", SCRIPT + code], capture_output=True, text=True,
                          env={**clean, "OPENBLAS_NUM_THREADS": "1", **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="no /proc")
CALL = "libmx.fake_quantize(LARGE, 'mxfp8'{})"


def test_threads_stay_and_are_as_many_as_named():
    code = f"""
for n in (1, 4, 4, 3, 6, 2):
    print(made_by(lambda: {CALL.format(', threads=n')}))
"""
    assert run(code) == ["0", "3", "3", "3", "5", "5"]


def test_the_environment_and_set_num_threads():
    call = f"print(made_by(lambda: {CALL.format('')}))\n"
    assert run(call, OMP_NUM_THREADS="1") == ["0"]
    assert run(call, OMP_NUM_THREADS="5,2") == ["4"]
    assert run("libmx.set_num_threads(3)\n" + call, OMP_NUM_THREADS="1") == ["2"]
    assert run("libmx.set_num_threads(7)\nlibmx.set_num_threads(0)\n" + call, OMP_NUM_THREADS="2") == ["1"]


@pytest.mark.parametrize("call", [
    "libmx.quantize(LARGE, 'mxfp8')", "libmx.quantize(LARGE, 'mxfp8', threads=1).dequantize()",
    "libmx.cast(LARGE, 'e4m3')", "libmx.matmul(LARGE[:256, :256], LARGE[:256, :256], 'mxfp8')",
    "libmx.statistics('mxfp8').update(LARGE)", "libmx.analyze({'x': LARGE}, 'mxfp8')",
    "libmx.compare({'x': LARGE}, 'mxfp8', axes={'scale': ['floor', 'even']})",
    "libmx.cluster({'x': LARGE}, 'mxfp8')", "libmx.diff([{'x': LARGE}, {'x': LARGE}], 'mxfp8')"])
def test_every_function_keeps_to_it(call):
    assert run(f"libmx.set_num_threads(1)\nprint(made_by(lambda: {call}))") == ["0"]


def test_small_calls_stay_in_the_caller():
    assert run("""
small = np.ones((8, 64), np.float32)
print(made_by(lambda: libmx.fake_quantize(small, "mxfp8", threads=4)))
print(made_by(lambda: libmx.matmul(small, small.T, "mxfp8", threads=4)))
""") == ["0", "0"]


def test_numbers_that_are_none():
    for threads in (-1, 2 ** 40):
        with pytest.raises(libmx.Error, match=f"threads={threads}"):
            libmx.set_num_threads(threads)
        with pytest.raises(libmx.Error, match=f"threads={threads}"):
            libmx.fake_quantize(memoryview(bytes(64)).cast("f"), "mxfp8",
                                threads=threads)


def test_pytorch_sets_the_number():
    pytest.importorskip("torch")
    code = """
import torch, libmx.torch as mxt
torch.set_num_threads(1)
x = torch.ones(2048, 2048)
BEFORE = threads()
print(made_by(lambda: libmx.fake_quantize(x, "mxfp8")))
print(made_by(lambda: mxt.fake_quantize(x, "mxfp8")))
torch.set_num_threads(3)
BEFORE = threads()
print(made_by(lambda: mxt.fake_quantize(x, "mxfp8")))
"""
    assert run(code) == ["0", "0", "2"]
