#!/usr/bin/env python3
"""A tokenizer trained from text, looked at, used to tokenize, and (in a build that trains) a model trained on the result.

usage: train_tokenizer.py PENSTOCK [--without-torch]

Checks: the file is the same for one and two threads, for a file larger than a piece, for each pattern; inspect says what
was asked for and that the text comes back; the command that train prints as the next one works; tokens decode to the
text; an existing tokenizer is not overwritten; progress is said; mistakes are one line with exit status 2 and leave nothing.
"""
import argparse
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

from checks import check, exit_status

CONFIG = """
[train]
steps = 4
batch = 4
[model]
layers = 1
hidden = 32
heads = 2
[data]
source = "tokens"
path = "{path}"
sequence = 32
"""

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("penstock")
    parser.add_argument("--without-torch", action="store_true")
    arguments = parser.parse_args()
    penstock = pathlib.Path(arguments.penstock).resolve()
    root = pathlib.Path(tempfile.mkdtemp(prefix="penstock-train-tokenizer-"))

    def call(*words):
        return subprocess.run([penstock, *map(str, words)], capture_output=True, text=True, errors="replace", cwd=root)

    syllables = ["ka", "lo", "mi", "ne", "ru", "so", "ti", "va", "wen", "dor"]
    word = lambda i: "".join(syllables[int(digit)] for digit in str(i * i % 99991))
    text_of = lambda i: line.format(i % 97, i % 10007, word(i))
    line = "def function_{0}(x, {2}):\n    return x + {1}  # caf\u00e9 \u6f22\u5b57 it's \U0001f600\n\nprint({1})\r\n"
    corpus = root / "my corpus"
    corpus.mkdir()
    # Larger than a piece (1 MiB), so that it is cut.
    (corpus / "large.txt").write_text("".join(text_of(i) for i in range(40000)))
    (corpus / "lines.jsonl").write_text("".join(json.dumps({"text": text_of(i)}) + "\n" for i in range(500)))
    (corpus / "picture.bin").write_bytes(bytes(range(256)))

    for pattern in ("gpt2", "llama3", "qwen2", r"\p{L}+|\p{N}+|[^\p{L}\p{N}]+"):
        name = pattern if pattern.isalnum() else "own"
        made = []
        for threads in (1, 2):
            done = call("tokenizer", "train", corpus, "--vocabulary", 600, "--pattern", pattern, "--out", f"{name}{threads}",
                        "--threads", threads, "--json")
            check(done.returncode == 0, f"train {name} on {threads}", done.stderr)
            made.append((root / f"{name}{threads}/tokenizer.json").read_bytes())
            said = json.loads(done.stdout)
            check(said["documents"] == 501 and said["vocabulary"] == 600 and said["merges"] >= 343 and said["skipped_files"] == 1,
                  f"summary of {name}", said)
        check(made[0] == made[1], f"{name}: one file for one and two threads")

    done = call("tokenizer", "train", "my corpus", "--vocabulary", 500, "--special", "<end>", "--special", "<user>", "--out", "made")
    check(done.returncode == 0 and "distinct words" in done.stdout and "500" in done.stdout, "train", done.stdout + done.stderr)
    text = "def caf\u00e9 \U0001f680\n\n  <user>\n"
    inspected = call("tokenizer", "inspect", "made", "--text", text, "--json")
    found = json.loads(inspected.stdout) if inspected.returncode == 0 else {}
    check(found.get("vocabulary") == 500 and found["lossless"] and found["end_of_document"] == 0 and found["text"]["same_text"]
          and [t["text"] for t in found["special_tokens"]] == ["<end>", "<user>"] and found["text"]["ids_with_special_tokens"][-2] == 1,
          "inspect", inspected.stdout + inspected.stderr)

    next_command = shlex.split(done.stdout.splitlines()[-1].removeprefix("next: "))
    check(next_command[:3] == ["penstock", "tokenize", "my corpus"], "the next command", next_command)
    done = call(*next_command[1:])
    check(done.returncode == 0 and (root / "tokens/train.tokens").exists(), "tokenize as it says", done.stderr)
    check((root / "tokens/tokenizer/tokenizer.json").read_bytes() == (root / "made/tokenizer.json").read_bytes(), "the tokenizer goes along")
    if not arguments.without_torch:
        (root / "run.toml").write_text(CONFIG.format(path=root / "tokens"))
        done = call("train", "run.toml", "--json", "--set", f"run.dir={root}/run")
        check(done.returncode == 0, "train a model on it", done.stderr)
        lines = [json.loads(l) for l in (root / "run/metrics.jsonl").read_text().splitlines()]
        check(len(lines) == 4 and 4 < lines[0]["loss"] < 8, "losses", lines)
        done = call("generate", "run", "--prompt", "def ", "--tokens", 4)
        check(done.returncode == 0 and done.stdout.startswith("def "), "generate", done.stderr)

    before = (root / "made/tokenizer.json").read_bytes()
    done = call("tokenizer", "train", "my corpus", "--vocabulary", 400, "--out", "made")
    check(done.returncode == 2 and "overwrite" in done.stderr and (root / "made/tokenizer.json").read_bytes() == before, "not overwritten",
          done.stderr)
    (root / "small.txt").write_text("a few words")
    done = call("tokenizer", "train", "small.txt", "--vocabulary", 5000, "--out", "small")
    check(done.returncode == 0 and "less than the 5000 asked for" in done.stdout, "a vocabulary out of reach", done.stdout + done.stderr)
    (root / "empty.txt").write_text("")
    for what, words in {
        "there is no text": ("empty.txt",),
        "is not there": ("nothing",),
        "at least 257": ("small.txt", "--vocabulary", 256),
        "known: gpt2": ("small.txt", "--pattern", "gtp2"),
        "(abc": ("small.txt", "--pattern", "(abc"),
        "nfc": ("small.txt", "--normalizer", "nfx"),
        "given twice": ("small.txt", "--special", "<a>", "--special", "<a>"),
        "is not text": ("my corpus/picture.bin",),
    }.items():
        done = call("tokenizer", "train", *words, "--out", "bad")
        check(done.returncode == 2 and what in done.stderr and done.stderr.count("\n") == 1 and not (root / "bad").exists(), f"refused: {what}",
              done.stderr)
    done = call("tokenizer", "train", "small.txt")
    check(done.returncode == 2 and "--out" in done.stderr, "without --out", done.stderr)
    shutil.rmtree(root, ignore_errors=True)
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
