#!/usr/bin/env python3
"""Text to token files to a trained model to text, through the program, with a byte-level BPE tokenizer.

usage: train_on_tokens.py PENSTOCK

Checks: tokenize gives the same files in one piece, on several threads and after the separator is a line; a run on the
files has bit for bit the losses of any number of ranks, for one source, within documents and for a mixture, also when it
is stopped half-way and goes on with other ranks; so are evaluations on the way, and eval gives their figures; generate
and eval of a text work when tokens and tokenizer are gone; damaged token files
are refused by name with exit status 2, and so is a model with too small a vocabulary.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import small_bpe
from checks import check, exit_status

CONFIG = """
[train]
steps = {steps}
batch = 8
micro_batch = 1
[model]
layers = 2
hidden = 32
heads = 2
dropout = 0.1
[data]
source = "tokens"
sequence = 24
{data}
[numerics]
reproducible = true
[checkpoint]
every = 3
"""

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("penstock")
    penstock = parser.parse_args().penstock
    root = pathlib.Path(tempfile.mkdtemp(prefix="penstock-tokens-"))

    def call(*words):
        return subprocess.run([penstock, *map(str, words)], capture_output=True, text=True, errors="replace")

    def losses(run):
        lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
        return {line["step"]: line["loss"] for line in lines}

    text = "".join(f"def function_{i % 97}(x):\n    return x + {i}  # caf\u00e9 \u6f22\u5b57\n\nprint({i})\n" for i in range(1500))
    documents = [text[i:i + 900] for i in range(0, len(text), 900)]
    corpus = root / "corpus"
    corpus.mkdir()
    (corpus / "a.jsonl").write_text("".join(json.dumps({"text": d}) + "\n" for d in documents))
    (corpus / "b.txt").write_text("\n<|end|>\n".join(documents[:20]))
    tokenizer = root / "tokenizer"
    tokenizer.mkdir()
    (tokenizer / "tokenizer.json").write_text(small_bpe.tokenizer_json(text, 300, small_bpe.LLAMA3))

    def tokenize(out, *more):
        done = call("tokenize", corpus, "--out", root / out, "--tokenizer", tokenizer, "--validation", 0.1,
                    "--document-separator", "<|end|>", "--json", *more)
        check(done.returncode == 0, f"tokenize to {out}", done.stderr)
        return json.loads(done.stdout)

    made = tokenize("tokens", "--threads", 1)
    tokenize("again", "--threads", 3, "--part", "1 KiB")
    check(made["train"]["documents"] + made["validation"]["documents"] == len(documents) + 20, "number of documents", made)
    for name in ("train.tokens", "validation.tokens", "tokenizer/tokenizer.json"):
        check((root / "tokens" / name).read_bytes() == (root / "again" / name).read_bytes(), f"{name} of any threads")

    sources = {
        "one": f'path = "{root}/tokens"',
        "within": f'path = "{root}/tokens"\npacking = "within"',
        "mixture": f'sources = ["{root}/tokens=2", "{root}/again/validation.tokens=1"]',
    }
    for name, data in sources.items():
        config = root / f"{name}.toml"
        config.write_text(CONFIG.format(steps=6, data=data))
        (root / f"{name}-half.toml").write_text(CONFIG.format(steps=3, data=data))
        runs = {}
        for layout in ("parallel.data=1", "parallel.data=4", "parallel.pipeline=2"):
            run = root / f"{name}-{layout}"
            done = call("train", config, "--json", "--set", f"run.dir={run}", layout)
            check(done.returncode == 0, f"{name}, {layout}", done.stderr)
            runs[layout] = losses(run)
        run = root / f"{name}-resumed"
        call("train", root / f"{name}-half.toml", "--json", "--set", f"run.dir={run}", "parallel.data=4",
             "optimizer.decay_steps=6")
        done = call("train", config, "--json", "--set", f"run.dir={run}", "parallel.data=2", "optimizer.decay_steps=6")
        check(done.returncode == 0, f"{name}, resumed", done.stderr)
        runs["resumed"] = losses(run)
        reference = runs["parallel.data=1"]
        check(len(reference) == 6 and all(r == reference for r in runs.values()), f"{name}: losses of any ranks", runs)

    # What is held back is evaluated on the way, by any ranks with the same bits, and by eval with the same figures.
    evaluated = []
    for layout in ("parallel.data=1", "parallel.data=3", "parallel.pipeline=2"):
        run = root / f"evaluated-{layout}"
        done = call("train", root / "one.toml", "--json", "--set", f"run.dir={run}", layout, "eval.every=3", "eval.batches=0",
                    "log.tensorboard=true")
        check(done.returncode == 0, f"evaluating, {layout}", done.stderr)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        evaluated.append([{k: v for k, v in line.items() if k.startswith("eval_")} for line in lines])
    check(evaluated[0] == evaluated[1] == evaluated[2] and [bool(e) for e in evaluated[0]] == [False, False, True] * 2,
          "evaluations of any ranks", evaluated)

    def evaluate(*words):
        done = call("eval", root / "evaluated-parallel.data=3", "--json", *words)
        check(done.returncode == 0, f"eval {words}", done.stderr)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    last, own = evaluated[0][-1], evaluate()
    check(own["tokens"] == last["eval_tokens"] and abs(own["loss"] - last["eval_loss"]) < 1e-5
          and abs(own["bits_per_byte"] - last["eval_bits_per_byte"]) < 1e-5, "eval of what was held back", (own, last))
    file = evaluate("--data", root / "tokens/validation.tokens")
    check(file["tokens"] == own["tokens"] and abs(file["loss"] - own["loss"]) < 1e-9, "eval of a token file", (file, own))
    done = call("eval", root / "one-parallel.data=1", "--data", root / "tokens/train.tokens", "--tokenizer", "bytes")
    check(done.returncode == 2 and "tokenizer" in done.stderr, "eval with another tokenizer", done.stderr)

    damaged = root / "damaged"
    damaged.mkdir()
    whole = (root / "tokens/train.tokens").read_bytes()
    for what, content in (("cut", whole[:-100]), ("changed", whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])):
        (damaged / "train.tokens").write_bytes(content)
        done = call("train", root / "one.toml", "--set", f"run.dir={root}/no", f"data.path={damaged}")
        check(done.returncode == 2 and "damaged/train.tokens" in done.stderr, f"{what} token file", done.stderr)
    done = call("train", root / "one.toml", "--set", f"run.dir={root}/no", "model.vocabulary=300")
    check(done.returncode == 2 and "model.vocabulary" in done.stderr and not (root / "no").exists(), "vocabulary",
          done.stderr)

    for gone in (root / "tokens", root / "again", tokenizer):
        shutil.rmtree(gone)
    done = call("generate", root / "one-parallel.data=4", "--prompt", "def ", "--tokens", 5)
    check(done.returncode == 0 and done.stdout.startswith("def "), "generate without tokens", done.stderr)
    (root / "new.txt").write_text(text[:5000])
    size = len((root / "new.txt").read_bytes())
    new = evaluate("--data", root / "new.txt")
    check(size - 20 < new["bytes"] < size and new["tokens"] < size / 2, "eval of a text without tokens", new)
    shutil.rmtree(root, ignore_errors=True)
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
