# SPDX-License-Identifier: Apache-2.0
"""Evaluations of language models: the document of the command."""
import json
import pathlib
import subprocess

import numpy as np
import pytest

import libmx

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "datasets" / "vectors" / "eval" / "llama"
RNG = np.random.default_rng(3)
IDS = RNG.integers(3, 96, 40).astype(np.int32)


def test_the_document_is_that_of_the_command(mx, tmp_path):
    np.save(tmp_path / "ids.npy", IDS)
    made = subprocess.run(
        [mx, "eval", str(FOLDER), "--tokens", str(tmp_path / "ids.npy"), "-r",
         "mxfp4:scale=even", "--weights", "mxfp8", "--context", "20", "--each", "kind", "--json",
         "-"], check=True, capture_output=True)
    d = libmx.evaluate(FOLDER, IDS, "mxfp4:scale=even", weights="mxfp8", context=20, each="kind")
    command = json.loads(made.stdout)
    assert command.pop("text") == str(tmp_path / "ids.npy")
    assert d.content.pop("text") == "tokens"
    assert d.content == command
    assert [r["recipe"] for r in d.records] == ["mxfp4:scale=even", "weights=mxfp8"]
    other = libmx.evaluate(FOLDER, IDS, kv="mxfp8", attention="mxfp6", at="*.q_proj:w=mxfp4")
    assert [r["recipe"] for r in other.records] == ["kv=mxfp8 attention=mxfp6"]


def test_tokens_of_any_kind_and_threads():
    first = libmx.evaluate(FOLDER, IDS, "mxfp8").content
    assert libmx.evaluate(FOLDER, [int(i) for i in IDS], "mxfp8", threads=3).content == first
    assert libmx.evaluate(FOLDER, sample=50, context=25).content["tokens"] == 50


def test_errors_name_what_is_wrong():
    with pytest.raises(libmx.Error, match="vocabulary of 96"):
        libmx.evaluate(FOLDER, [1, 96, 2], "mxfp8")
    with pytest.raises(libmx.Error, match="precision"):
        libmx.evaluate(FOLDER, IDS, precision="float16")
    with pytest.raises(libmx.Error, match="prediction needs two"):
        libmx.evaluate(FOLDER, [5], "mxfp8")
