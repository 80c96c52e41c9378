# SPDX-License-Identifier: Apache-2.0
"""The benchmarks: figures of a ratio are times of one clock, and memory is that of the program."""
import importlib.util
import pathlib
import types

import numpy as np
import pytest

path = pathlib.Path(__file__).resolve().parents[1] / "benchmarks.py"
pytestmark = pytest.mark.skipif(not path.exists(), reason="not in a checkout")


@pytest.fixture
def benchmarks(monkeypatch):
    spec = importlib.util.spec_from_file_location("benchmarks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.shown = {}
    monkeypatch.setattr(module, "show",
                        lambda what, figure, *_: module.shown.update({what: figure}))
    return module


def test_ratios_are_of_one_clock(benchmarks, monkeypatch, capsys):
    """On a machine where a process gets half of the time, calls as quick as those of the command
    have the ratio 1."""
    wall = [0.0]
    clock = types.SimpleNamespace(perf_counter=lambda: wall[0], process_time=lambda: wall[0] / 2)

    def call(*_, **__):
        wall[0] += 1.0

    monkeypatch.setattr(benchmarks, "time", clock)
    monkeypatch.setattr(benchmarks, "bf16", lambda n: np.zeros((1, 1), np.float32))
    monkeypatch.setattr(benchmarks, "bench", lambda mx, n, recipes: dict.fromkeys(recipes, n / 1.0))
    monkeypatch.setattr(benchmarks, "libmx",
                        types.SimpleNamespace(analyze=call, fake_quantize=call))
    benchmarks.arrays("mx")
    assert len(benchmarks.shown) == 4 and set(benchmarks.shown.values()) == {1.0}


def test_memory_is_that_of_the_program(benchmarks):
    """Also if this process is larger: 1 GiB of float32 has 128 MiB of codes and 8 of scales."""
    if not pathlib.Path("/proc/self/status").exists():
        pytest.skip("no /proc")
    np.ones(5 << 26, np.float32)  # 1.25 GiB
    benchmarks.memory()
    (added,) = benchmarks.shown.values()
    assert 120 < added < 160
