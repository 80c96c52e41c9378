# SPDX-License-Identifier: Apache-2.0
"""Files: what is read, what is refused, and that both can be interrupted."""
import random
import struct
import subprocess
import sys
import textwrap
import zipfile

import numpy as np
import pytest

import libmx
from test_documents import tensors, write_safetensors


@pytest.fixture
def model(tmp_path):
    write_safetensors(tmp_path / "model.safetensors", tensors())
    return tmp_path / "model.safetensors"


def test_tensors_are_a_mapping(model):
    with libmx.open(model) as m:
        expected = {k: v for k, v in tensors().items() if v.dtype != np.int64}
        assert m.keys() == list(m) == list(expected) and len(m) == 4
        for name, x in expected.items():
            assert name in m and m.view(name).shape == x.shape
            np.testing.assert_array_equal(m[name], x.astype(np.float32))
            np.testing.assert_array_equal(m.rows(name, 5, 9), x[5:9].astype(np.float32))
            assert np.array_equal(libmx.quantize(m.view(name), "mxfp4").codes,
                                  libmx.quantize(x, "mxfp4").codes)
        views = libmx.analyze({f"their {k}": m.view(k) for k in m}, "mxfp8")
        assert views.column("tensor") == [f"their {k}" for k in m]
        assert views.column("rmse") == libmx.analyze(m, "mxfp8").column("rmse")
        w = "layers.0.mlp.up_proj.weight"
        q = "layers.1.attn.q_proj.weight"  # 64 x 96 by 48 x 64 has no product; the other way has
        assert np.array_equal(libmx.matmul(m.view(q), m.view(w), "mxfp8"),
                              libmx.matmul(m[q], m[w], "mxfp8"))
        assert list(m.left_out) == ["rotary.position_ids"]
        assert m.files == [(str(model), model.stat().st_size)] and m.metadata == {}
        with pytest.raises(KeyError):
            m["nothing"]
        with pytest.raises(TypeError):
            libmx.open(model, shapes=(1,))
    assert m.keys() == []


def test_several_files_are_one_model(tmp_path):
    for n, name in enumerate("ab"):
        write_safetensors(tmp_path / f"{name}.safetensors",
                          {name: np.full((2, 32), n, np.float32)})
    paths = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    for source in (paths, tmp_path, str(tmp_path / "*.safetensors")):
        with libmx.open(source) as m:
            assert m.keys() == ["a", "b"] and m["b"][1, 3] == 1


def seeds(model, folder):
    """Sound files of every kind that the package reads."""
    np.save(folder / "x.npy", np.arange(64, dtype=np.float32).reshape(2, 32))
    name = b"blk.0.ffn_up.weight"
    header = struct.pack("<IIQQ", 0x46554747, 3, 1, 0)
    header += struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, 64, 0, 0)
    header += b"\0" * (-len(header) % 32)
    (folder / "x.gguf").write_bytes(header + bytes(256))
    np.savez(folder / "x.npz", w=np.arange(64, dtype=np.float32).reshape(2, 32))
    write_pytorch(folder / "x.pt", np.arange(64, dtype=np.float32).reshape(2, 32))
    yield model
    yield folder / "x.npy"
    yield folder / "x.gguf"
    yield folder / "x.npz"
    yield folder / "x.pt"


def write_pytorch(path, x):
    """What torch.save writes of {"w": tensor}, a matrix of float32."""
    numbers = b"".join(b"K" + bytes([n]) for n in x.shape)
    strides = b"K" + bytes([x.shape[1]]) + b"K\1"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("archive/data.pkl", b"\x80\2}X\1\0\0\0wctorch._utils\n_rebuild_tensor_v2\n(("
                   b"X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0" b"0X\3\0\0\0cpuK"
                   + bytes([x.size]) + b"tQK\0" + numbers + b"\x86" + strides
                   + b"\x86\x89ccollections\nOrderedDict\n)RtRs.")
        z.writestr("archive/data/0", x.astype("<f4").tobytes())
        z.writestr("archive/version", "3\n")


def test_archives(tmp_path):
    """NPZ and PyTorch's files: the same tensors as those of arrays, and files with two of them."""
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, 40, 32)).astype(np.float32)
    np.savez(tmp_path / "stored.npz", x=x, y=y)
    np.savez_compressed(tmp_path / "packed.npz", x=x, y=y)
    for name in ("stored", "packed"):
        with libmx.open(tmp_path / f"{name}.npz") as m:
            assert m.keys() == ["x", "y"]
            assert np.array_equal(m["x"], x) and np.array_equal(m.rows("y", 7, 9), y[7:9])
    write_pytorch(tmp_path / "w.pt", x[:4])
    a = libmx.analyze(tmp_path / "w.pt", "mxfp4")
    assert a.column("tensor") == ["w"]
    assert a.column("rmse") == libmx.analyze({"w": x[:4]}, "mxfp4").column("rmse")


def test_hostile_files(model, tmp_path):
    draw = random.Random(7)
    refused = opened = 0
    for seed in seeds(model, tmp_path):
        with libmx.open(seed) as m:
            assert len(m) > 0
        sound = seed.read_bytes()
        for n in range(120):
            data = bytearray(sound)
            head = min(len(data), 400)
            for _ in range(draw.randint(1, 4)):
                at = draw.randrange(head)
                kind = draw.randrange(4)
                if kind == 0:
                    data[at] = draw.randrange(256)
                elif kind == 1:
                    data[at:at + 8] = struct.pack("<Q", draw.choice(
                        [0, 1, 2**31, 2**32 - 1, 2**53, 2**63, 2**64 - 1]))
                elif kind == 2:
                    del data[at:at + draw.randint(1, 64)]
                else:
                    data = data[:max(80, at * len(data) // head)]
                head = min(len(data), 400)
            path = tmp_path / f"hostile{seed.suffix}"
            path.write_bytes(data)
            try:
                with libmx.open(path) as m:
                    for name in m:
                        m[name]
                opened += 1
            except libmx.Error as e:
                refused += 1
                assert e.kind == "input" and e.file == str(path) and "\n" not in str(e)
    assert refused > 200 and opened > 0  # of 600


def test_places(model, tmp_path):
    data = model.read_bytes()
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(data[:-100])
    with pytest.raises(libmx.Error) as caught:
        libmx.open(cut)
    assert caught.value.file == str(cut) and caught.value.tensor
    for ending in ("npz", "pt", "h5"):
        path = tmp_path / f"x.{ending}"
        path.write_bytes({"npz": b"PK\x03\x04", "pt": b"PK\x03\x04",
                          "h5": b"\x89HDF\r\n\x1a\n"}[ending] + bytes(64))
        with pytest.raises(libmx.Error) as caught:
            libmx.open(path)
        assert caught.value.file == str(path)
        if caught.value.kind == "unavailable":
            assert "h5py" in str(caught.value)


INTERRUPTED = """
    import os, signal, sys, threading, time
    import numpy as np
    import libmx
    x = np.zeros((1 << 13, 1 << 13), np.float32)
    x[:] = np.random.default_rng(0).standard_normal(1 << 13, dtype=np.float32)
    raised = []
    def interrupt():
        time.sleep(0.1)
        raised.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
    try:
        threading.Thread(target=interrupt).start()
        {call}
        print("done")
    except KeyboardInterrupt:
        print(time.process_time() - raised[0])  # of the processor: others may be at work, too
"""


@pytest.mark.parametrize("call", [
    "libmx.analyze({'x': x}, ['mxfp8', 'mxfp4', 'nvfp4', 'mxint8'] + "
    "[f'mxfp4:round=stochastic,seed={n}' for n in range(40)], threads=1)",
    "[libmx.quantize(x, 'nvfp4', threads=1) for _ in range(100)]",
    "[libmx.fake_quantize(x, 'mxfp4:round=stochastic', threads=1) for _ in range(100)]",
    "libmx.matmul(x, x, 'mxfp8', threads=1)",
    # 8 GiB of zeros, which take no disk
    "np.lib.format.open_memmap('w.npy', 'w+', np.float32, (1 << 16, 1 << 15)); libmx.lint('w.npy', values=True)",
])
def test_control_c(call, tmp_path):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(INTERRUPTED).format(call=call)],
                          capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout != "done\n" and float(done.stdout) < 1.0  # 0.2 most often


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no /proc")
def test_memory():
    # Codes and scales are all that is added: nothing is copied, nothing is kept twice.
    # VmHWM begins with the program; ru_maxrss would begin with the peak of this process.
    program = """
        import re
        import numpy as np, libmx
        def peak():
            with open("/proc/self/status") as status:
                return int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) / 1024
        x = np.ones((1 << 13, 1 << 13), np.float32)  # 256 MiB
        libmx.quantize(x[:64], "mxfp4")
        before = peak()
        codes, scales = libmx.quantize(x, "mxfp4")
        print(peak() - before)
    """
    np.ones(1 << 27, np.float32)  # a peak of this process that is higher than the program's
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True,
                          text=True, check=True)
    assert 34 <= float(done.stdout) + 2 < 60  # MiB; the codes are 32, the scales 2
