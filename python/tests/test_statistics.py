# SPDX-License-Identifier: Apache-2.0
"""Statistics: merges in any order, through pickles and through SUM and MAX, to the same bits."""
import itertools
import pickle

import ml_dtypes
import numpy as np
import pytest

import libmx

RECIPES = ["mxfp8:scale=floor", "mxfp4:scale=even", "nvfp4", "mxint8", "mxfp4:offset=fp16",
           "mxfp4:round=stochastic", "mxfp4:dialect=torchao"]


def arrays(count=4):
    rng = np.random.default_rng(3)
    return [(rng.standard_normal((8 + 8 * i, 64)) * 10.0 ** (i * 4 - 8)).astype(np.float32)
            for i in range(count)]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", ["w", "layers.3.norm.weight", "layers.3.mlp.up.weight"])
def test_one_array_is_an_analysis(recipe, name):
    for x in (arrays()[1], arrays()[2].astype(ml_dtypes.bfloat16), arrays()[0][0]):
        s = libmx.statistics(recipe, name)
        s.update(x)
        assert s.record() == libmx.analyze({name: x}, recipe).records[0]
        assert pickle.loads(pickle.dumps(s)).record() == s.record()


def test_several_recipes_in_one_pass():
    each = [libmx.statistics(r, "w") for r in RECIPES]
    for x in arrays():
        libmx.Statistics.update_all(each, x)
    libmx.Statistics.update_all([], arrays()[0])
    for s in each:
        alone = libmx.statistics(s.recipe, "w")
        for x in arrays():
            alone.update(x)
        assert s.record() == alone.record()
    before = each[0].record()
    with pytest.raises(libmx.Error, match="axis"):
        libmx.Statistics.update_all([each[0], libmx.statistics("mxfp8:axis=3", "w")],
                                    np.ones(32, np.float32))
    assert each[0].record() == before


@pytest.mark.parametrize("recipe", RECIPES)
def test_merges_in_any_order(recipe):
    def seen(*indices):
        s = libmx.statistics(recipe, "w")
        for i in indices:
            s.update(arrays()[i])
        return s

    expected = seen(0, 1, 2, 3).record()
    for order in itertools.permutations(range(4)):
        assert seen(*order).record() == expected
        s, other = seen(*order[:1]), seen(*order[2:])
        other.merge(seen(order[1]))
        s.merge(pickle.loads(pickle.dumps(other)))
        assert s.record() == expected
    assert expected["elements"] == sum(x.size for x in arrays())
    assert expected["shape"] == [expected["elements"]]


@pytest.mark.parametrize("recipe", [r for r in RECIPES if r not in ("nvfp4",
                                                                     "mxfp4:round=stochastic")])
def test_shards_of_a_tensor(recipe):
    x = arrays()[3]  # cut between blocks: counts and maxima are those of the whole
    s = libmx.statistics(recipe, "w")
    for part in (x[20:], x[:7], x[7:20]):
        s.update(part)
    whole = libmx.analyze({"w": x}, recipe).records[0]
    for member, value in s.record().items():
        if member in ("shape", "contraction", "tensor_scale"):
            continue
        if isinstance(value, float):
            assert value == pytest.approx(whole[member], rel=1e-12), member
        else:
            assert value == whole[member], member
    exact = ("max_abs_error", "clamp_rate", "underflow_rate", "top_code_rate",
             "saturated_block_rate", "collapsed_block_rate")
    assert [s.record()[m] for m in exact] == [whole[m] for m in exact]


@pytest.mark.parametrize("recipe", RECIPES)
def test_reductions_are_exact(recipe):
    parts = []
    whole = libmx.statistics(recipe, "w")
    for x in arrays() + [np.full((2, 64), np.nan, np.float32)]:
        parts.append(libmx.statistics(recipe, "w"))
        parts[-1].update(x)
        whole.merge(parts[-1])
    parts.append(libmx.statistics(recipe, "w"))  # a process without data
    for order in itertools.islice(itertools.permutations(parts), 0, 720, 97):
        sums = sum(s.to_sum_max()[0] for s in order)
        maxima = np.max([s.to_sum_max()[1] for s in order], axis=0)
        reduced = libmx.Statistics.from_sum_max(recipe, sums, maxima, name="w")
        assert reduced.record() == whole.record()
        reduced.merge(parts[0])  # and they go on
    assert sums.dtype == np.float64 and np.array_equal(sums, np.trunc(sums))


def test_sums_are_exact():
    # Powers of two, so that the sums of blocks are exact: the whole is rounded once.
    from fractions import Fraction
    xs = [np.full((1, 32), v, np.float32) for v in (2.0**60, 1.5, 2.0**-66, -(2.0**31))]
    s = libmx.statistics("mxfp8", "w")
    for x in xs:
        s.update(x)
    squares = sum(Fraction(float(v)) ** 2 for x in xs for v in x.reshape(-1))
    through = libmx.Statistics.from_sum_max("mxfp8", *s.to_sum_max(), name="w")
    for one in (s, through):
        assert one.record()["rms"] == float(squares / 128) ** 0.5


def test_refusals():
    s = libmx.statistics("mxfp8", "w")
    with pytest.raises(libmx.Error):
        s.merge(libmx.statistics("mxfp4", "w"))
    with pytest.raises(libmx.Error):
        s.update(np.array(["a"]))
    with pytest.raises(libmx.Error, match="axis"):
        libmx.statistics("mxfp8:axis=3").update(np.ones((2, 32), np.float32))
    sums, maxima = s.to_sum_max()
    assert s.record()["elements"] == 0 and s.record()["sqnr_db"] is None
    for wrong in (sums[:-1], sums + 0.5, sums * np.nan, sums - 1, sums + 1e300):
        with pytest.raises(libmx.Error):
            libmx.Statistics.from_sum_max("mxfp8", wrong, maxima)
    with pytest.raises(libmx.Error):
        libmx.Statistics.from_sum_max("mxfp8", sums, maxima * np.nan)
