# SPDX-License-Identifier: Apache-2.0
"""What recipes do to a language model of Hugging Face transformers, like `mx eval`: perplexity and divergence.

    python transformers_eval.py MODEL TEXT mxfp8:scale=rceil nvfp4
"""
import copy
import sys
from typing import Any, Dict, List, Sequence

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from libmx.torch import LinearConfig, convert_


def log_probabilities(model: Any, ids: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        logits: torch.Tensor = model(ids[None]).logits[0, :-1]
    return logits.double().log_softmax(-1)


def evaluate(model: Any, ids: torch.Tensor, recipes: Sequence[str]) -> List[Dict[str, Any]]:
    """Weights and inputs of every linear layer but lm_head, one window of tokens."""
    base = log_probabilities(model, ids)
    rows = []
    for recipe in recipes:
        changed = copy.deepcopy(model)
        convert_(changed, LinearConfig(fprop=recipe))
        log_q = log_probabilities(changed, ids)
        nll = -log_q.gather(1, ids[1:, None]).mean()
        kld = (base.exp() * (base - log_q)).sum(-1).mean()
        rows.append({"recipe": recipe, "perplexity": nll.exp().item(), "kld_mean": kld.item()})
    return rows


if __name__ == "__main__":
    text = AutoTokenizer.from_pretrained(sys.argv[1])(open(sys.argv[2]).read())["input_ids"]
    loaded = AutoModelForCausalLM.from_pretrained(sys.argv[1]).eval()
    print(*evaluate(loaded, torch.tensor(text), sys.argv[3:]), sep="\n")
