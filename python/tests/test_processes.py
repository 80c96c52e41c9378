# SPDX-License-Identifier: Apache-2.0
"""Children made by fork after use, and Python threads."""
import os
import signal
import threading
import time

import numpy as np
import pytest

import libmx

rounds = int(os.environ.get("MX_FORK_ROUNDS", "100"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_children_made_after_use_go_on():
    """OpenMP's threads, which a child lacks, would make it wait for ever."""
    x = np.random.default_rng(1).standard_normal((64, 512), dtype=np.float32)
    expected = libmx.fake_quantize(x, "mxfp4", threads=2)
    large = np.ones((256, 256), np.float32)  # more than a call does in the caller's thread
    libmx.fake_quantize(large, "mxfp4", threads=2)
    for i in range(rounds):
        child = os.fork()
        if child == 0:
            signal.alarm(300)  # a child that waits is killed, and counted
            y = libmx.fake_quantize(x, "mxfp4", threads=2)
            os._exit(0 if np.array_equal(y, expected) else 1)
        assert os.waitpid(child, 0)[1] == 0, f"round {i}"


def test_workers_of_a_data_loader():
    torch = pytest.importorskip("torch")

    class Quantized(torch.utils.data.Dataset):
        def __len__(self):
            return 16

        def __getitem__(self, i):
            return libmx.fake_quantize(torch.full((128, 256), float(i)), "mxfp8", threads=2)

    libmx.fake_quantize(torch.ones(256, 256), "mxfp8", threads=2)
    loader = torch.utils.data.DataLoader(Quantized(), batch_size=4, num_workers=4, timeout=600)
    assert [int(b[0, 0, 0]) for b in loader] == [0, 4, 8, 12]


def test_calls_release_the_interpreter():
    """Another Python thread runs while a call does."""
    x = np.random.default_rng(1).standard_normal((2048, 2048), dtype=np.float32)
    ticks, over = [0], threading.Event()

    def tick():
        while not over.is_set():
            ticks[0] += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    during = 0
    while during <= 2:  # without end if calls do not
        before = ticks[0]
        libmx.fake_quantize(x, "nvfp4", threads=1)
        during += ticks[0] - before
    over.set()
    thread.join()


def test_threads_get_the_same_bytes():
    x = np.random.default_rng(2).standard_normal((512, 512), dtype=np.float32)
    expected = libmx.fake_quantize(x, "mxfp4")
    wrong = []

    def work():
        for _ in range(20):
            if not np.array_equal(libmx.fake_quantize(x, "mxfp4", threads=2), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
