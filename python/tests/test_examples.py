# SPDX-License-Identifier: Apache-2.0
"""The examples: the notebook is executed, and the adapters run with the libraries they are for
where those are, otherwise with stand-ins of the same signatures."""
import importlib
import json
import pathlib
import subprocess
import sys
import types

import numpy as np
import pytest

import libmx

folder = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
pytestmark = pytest.mark.skipif(not folder.exists(), reason="not in a checkout")


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(folder))


def present(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def stand_in(monkeypatch, name, **members):
    """A module `name`, and its parents, where the real one is not installed."""
    if present(name):
        return False
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        module = types.ModuleType(".".join(parts[:i]))
        module.__path__ = []
        monkeypatch.setitem(sys.modules, module.__name__, module)
        if i > 1:
            setattr(sys.modules[".".join(parts[:i - 1])], parts[i - 1], module)
    for key, value in members.items():
        setattr(sys.modules[name], key, value)
    return True


def load(name):
    sys.modules.pop(name, None)
    return importlib.import_module(name)


def test_adapters_are_short():
    lines = {p.name: len(p.read_text().splitlines()) for p in folder.glob("*.py")}
    assert len(lines) >= 6 and max(lines.values()) < 40, lines


def test_the_readme_works_when_pasted(capsys):
    text = (folder.parents[1] / "README.md").read_text()
    block = text.partition("pip install ./python")[2].partition("```python\n")[2]
    block = block.partition("```")[0]
    assert block.count("\n") <= 5
    exec(compile(block, "README.md", "exec"), {})
    assert "mxfp4" in capsys.readouterr().out


def test_the_notebook_runs(mx, monkeypatch, capsys):
    pytest.importorskip("torch")
    monkeypatch.setenv("MX", mx)
    path = folder / "norms_and_training.ipynb"
    if present("nbclient") and present("ipykernel"):
        import nbclient
        import nbformat
        nbclient.NotebookClient(nbformat.read(path, 4), timeout=3000).execute()
        return
    names = {"__name__": "__main__"}
    for cell in json.loads(path.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        lines = "".join(cell["source"]).splitlines()
        exec(compile("\n".join(lines), str(path), "exec"), names)
        if lines[-1].isidentifier():  # what a notebook would display
            page = names[lines[-1]]._repr_html_()
            assert "<" in page and "<script" not in page
    said = capsys.readouterr().out
    assert "largest difference of losses" in said and "largest code whole" in said


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    torch = pytest.importorskip("torch")
    import libmx.torch as mxt
    path = tmp_path_factory.mktemp("parts") / "model.safetensors"
    generator = torch.Generator().manual_seed(1)
    mxt.save(path, {f"layers.{i}.{name}.weight": torch.randn(*shape, generator=generator)
                    for i in range(3) for name, shape in (("up", (96, 64)), ("down", (64, 96)),
                                                          ("norm", (64,)))})
    return str(path)


@pytest.mark.parametrize("name", ["ray", "dask"])
def test_parts_are_the_whole(name, checkpoint, monkeypatch, tmp_path):
    if name == "ray":
        if not stand_in(monkeypatch, "ray", get=list,
                        remote=lambda f: types.SimpleNamespace(remote=f)):
            import ray
            ray.init(num_cpus=2, include_dashboard=False, ignore_reinit_error=True, runtime_env={
                "env_vars": {"PYTHONPATH": ":".join(filter(None, sys.path))}})
    else:
        class Delayed:
            def __init__(self, f):
                self.f, self.a = f, ()

            def __call__(self, *a):
                self.a = a
                return self

            def compute(self, scheduler):
                made = lambda x: x.compute(scheduler) if isinstance(x, Delayed) else x
                return self.f(*([made(t) for t in x] if isinstance(x, list) else x
                                for x in self.a))

        stand_in(monkeypatch, "dask.delayed", delayed=Delayed)
    recipes = ["mxfp8", "nvfp4"]
    libmx.analyze(checkpoint, recipes).save(tmp_path / "whole.json")
    load(name + "_analyze").analyze(checkpoint, recipes, 4).save(tmp_path / "parts.json")
    whole, parts = (json.loads((tmp_path / f"{n}.json").read_text()) for n in ("whole", "parts"))
    assert whole["results"] == parts["results"] and len(whole["results"]) == 18


def test_megatron_metric(monkeypatch):
    torch = pytest.importorskip("torch")
    module = "megatron.training.tensor_metrics"
    stand_in(monkeypatch, module, LogicalReductionMetric=object)
    metric = load("megatron_metric").SaturatedBlocks("mxfp8")
    x = 0.94 + 0.05 * torch.rand(8, 64)
    x[2:] = torch.randn(6, 64)
    alone = libmx.analyze({"x": x}, "mxfp8").records[0]["saturated_block_rate"]
    assert alone == 0.25
    ranks = [metric.contribution(x[:3]), metric.contribution(x[3:]), metric.contribution(x[:0])]
    assert float(metric.finalize(sum(ranks))) == alone
    assert torch.isnan(metric.finalize(ranks[2]))
    if hasattr(sys.modules[module], "TensorMetricExecutor"):
        tm = sys.modules[module]
        value = tm.MetricTensor(x, (tm.MetricSite("x", "parameter"),))
        (result,) = tm.TensorMetricExecutor({}).run(metric, [value])
        assert float(result.tensor) == alone
        assert not tm.TensorMetricExecutor({}).run(
            metric, [tm.MetricTensor(x, (tm.MetricSite("x", "activation"),))])


def test_torchtitan_metric():
    torch = pytest.importorskip("torch")
    example = load("torchtitan_metric")
    x = torch.randn(8, 64)
    found = example.mx_metrics([("w", x), ("empty", x[:0])], "mxfp4")
    alone = libmx.analyze({"w": x}, "mxfp4").records[0]
    assert {k.rpartition("/")[2]: v for k, v in found.items() if "/w/" in k} == {
        k: alone[k] for k in example.FIGURES}


def small():
    import torch
    return torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.LayerNorm(32),
                               torch.nn.Linear(32, 1))


def test_transformers_callback(monkeypatch, tmp_path):
    torch = pytest.importorskip("torch")
    faked = stand_in(monkeypatch, "transformers", TrainerCallback=object, TrainerControl=object,
                     TrainerState=object, TrainingArguments=object)
    written = []
    callback = load("transformers_callback").MxCallback(
        ["mxfp8"], lambda *a: written.append(a), str(tmp_path / "f.json"), every=2)
    model = small()
    if faked:
        state = types.SimpleNamespace(global_step=0)
        callback.on_train_begin(None, state, None, model=model)
        for _ in range(4):
            model(torch.randn(8, 32)).sum().backward()
            state.global_step += 1
            callback.on_step_end(None, state, None, model=model)
        callback.on_train_end(None, state, None, model=model)
    else:
        import transformers

        class Regression(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = model

            def forward(self, x, labels=None):
                y = self.inner(x)
                return {"loss": (y - labels).square().mean(), "logits": y}

        data = [{"x": torch.randn(32), "labels": torch.randn(1)} for _ in range(32)]
        transformers.Trainer(
            Regression(), transformers.TrainingArguments(
                str(tmp_path), per_device_train_batch_size=4, gradient_accumulation_steps=2,
                max_steps=4, report_to=[], use_cpu=True, save_strategy="no",
                disable_tqdm=True), train_dataset=data, callbacks=[callback]).train()
    assert {step for _, _, step in written} == {2, 4}
    assert any("saturated_block_rate" in tag for tag, _, _ in written)
    assert len(json.loads((tmp_path / "f.json").read_text())["results"]) == 7


def test_lightning_callback(monkeypatch):
    torch = pytest.importorskip("torch")
    base = types.SimpleNamespace(Callback=object, Trainer=object, LightningModule=object)
    faked = stand_in(monkeypatch, "lightning.pytorch", **vars(base))
    logged = {}
    callback = load("lightning_callback").MxCallback(["mxfp8"], every=2)
    if faked:
        model, trainer = small(), types.SimpleNamespace(global_step=0)
        model.log_dict = logged.update
        callback.on_train_start(trainer, model)
        for i in range(4):
            model(torch.randn(8, 32)).sum().backward()
            trainer.global_step = (i + 1) // 2
            callback.on_train_batch_end(trainer, model, None, None, i)
        callback.on_train_end(trainer, model)
    else:
        import lightning.pytorch as pl

        class Module(pl.LightningModule):
            def __init__(self):
                super().__init__()
                self.inner = small()

            def training_step(self, batch, index):
                return self.inner(batch[0]).square().mean()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.01)

            def log_dict(self, values, **more):
                logged.update(values)
                super().log_dict(values, **more)

        data = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(torch.randn(32, 32)), batch_size=4)
        pl.Trainer(max_steps=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                   enable_progress_bar=False, enable_model_summary=False,
                   accumulate_grad_batches=2, callbacks=[callback]).fit(Module(), data)
    assert any(tag.endswith("weight/sqnr_db") for tag in logged)
    assert all(np.isfinite(v) for v in logged.values())


def test_transformers_eval(monkeypatch):
    torch = pytest.importorskip("torch")
    faked = stand_in(monkeypatch, "transformers", AutoModelForCausalLM=object, AutoTokenizer=object)
    module = load("transformers_eval")
    model = folder.parents[1] / "datasets" / "vectors" / "eval" / "llama"
    ids = torch.arange(40) * 7 % 90 + 3
    if faked:
        class Bigrams(torch.nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.embedding = torch.nn.Embedding(96, 64)
                self.layer, self.lm_head = torch.nn.Linear(64, 64), torch.nn.Linear(64, 96)

            def forward(self, tokens):
                h = self.embedding(tokens)
                return types.SimpleNamespace(logits=self.lm_head(h + self.layer(h)))

        rows = module.evaluate(Bigrams(), ids, ["mxfp8", "mxfp4"])
        assert 0 < rows[0]["kld_mean"] < rows[1]["kld_mean"]
        return
    loaded = sys.modules["transformers"].AutoModelForCausalLM.from_pretrained(model).float().eval()
    recipes = ["mxfp8:scale=rceil", "mxfp4:scale=even"]
    rows = module.evaluate(loaded, ids, recipes)
    for row, own in zip(rows, libmx.evaluate(model, ids, recipes).records):
        # Another order of float32 sums draws other roundings of quantized inputs.
        assert row["kld_mean"] == pytest.approx(own["kld_mean"], rel=0.2)
        assert row["perplexity"] == pytest.approx(own["perplexity"], rel=0.1)


def test_two_ranks_of_fsdp_compiled(tmp_path):
    torch = pytest.importorskip("torch")
    try:
        from torch.distributed.fsdp import fully_shard  # noqa: F401
    except Exception:
        pytest.skip(f"no fully_shard in PyTorch {torch.__version__}")
    ran = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                          str(folder / "fsdp_training.py"), str(tmp_path)], capture_output=True, text=True,
                         timeout=900)
    assert ran.returncode == 0, ran.stderr[-3000:]
    figures = json.loads((tmp_path / "figures.json").read_text())["results"]
    elements = {r["tensor"]: r["elements"] for r in figures if r["recipe"] == "mxfp8"}
    assert elements == {  # of both ranks: halves of parameters, 32 rows each
        "0.weight": 8192, "1.weight": 128, "2.weight": 8192, "0.input": 4096, "2.input": 8192,
        "0.output.grad": 8192, "2.output.grad": 4096}
    logged = [json.loads(line) for line in (tmp_path / "watch.jsonl").read_text().splitlines()]
    assert {line["step"] for line in logged} == {0, 2} and len(logged) == 2 * len(figures)
    with libmx.open(tmp_path / "dumps" / "rank-1" / "step-2.safetensors") as dump:
        assert dump["0.weight"].shape == (64, 64) and dump["2.output.grad"].shape == (32, 64)


def test_histograms(monkeypatch, tmp_path):
    example = load("histograms")
    x = np.array([[0, 0.5, -0.5, 6, -6, 4] + [3] * 26, [12] * 32], np.float32)
    codes = example.histograms(x, "mxfp4")["codes"]
    assert dict(zip(*np.unique(codes, return_counts=True))) == {-7: 1, -1: 1, 0: 1, 1: 1, 5: 26, 6: 1, 7: 33}
    assert list(example.histograms(x, "mxfp4")["scales"]) == [127, 128]

    written = {}

    class Writer:
        def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
            written[tag] = np.histogram(values, bins)[0].tolist(), global_step

    example.to_tensorboard(Writer(), "w", x, "mxfp4", 3)
    assert written["mx/w/scales"] == ([1, 1], 3) and sum(written["mx/w/codes"][0]) == 64
    if present("tensorboard") and present("torch"):
        from torch.utils.tensorboard import SummaryWriter
        with SummaryWriter(str(tmp_path)) as writer:
            example.to_tensorboard(writer, "w", x, "mxfp4", 3)
        assert b"mx/w/codes" in next(tmp_path.iterdir()).read_bytes()
    stand_in(monkeypatch, "wandb", Histogram=lambda np_histogram: types.SimpleNamespace(
        histogram=np_histogram[0].tolist()))
    logged = {}
    example.to_wandb(types.SimpleNamespace(log=lambda values, step: logged.update(values)), "w", x, "mxfp4", 3)
    assert list(logged["mx/w/scales"].histogram) == [1, 1]
