#!/usr/bin/env python3
"""kill -9 of `penstock tokenize` at random moments, and the same command again: the files of the run that nobody disturbed.

usage: tokenize_resume.py PENSTOCK [--kills N] [--seed S] [--tokenizer NAME]

About 12 MB of text of all kinds (one large file, small ones, .jsonl, a binary one). An undisturbed run gives the
reference. Then runs are started and killed with SIGKILL after a random delay, each time with another number of threads
and another size of parts, until one ends; and again, until N kills have hit a running program. After every run that
ended each file has the reference's bytes and nothing else is in the folder. Some kills must have left finished parts
that a later run went on from. Exit status 1 when anything differs.
"""
import argparse
import hashlib
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time


def make_text(root, dice):
    words = ["alpha", "beta", "gamma", "d\u00e9j\u00e0", "\u6f22\u5b57", "0x1f", "foo_bar()", "\U0001f600"]
    line = lambda: " ".join(dice.choices(words, k=dice.randrange(14))) + dice.choice(["\n", "\n\n", ".\nNext", "\n  "])
    lines = [line() for _ in range(5000)]
    (root / "big.txt").write_text("".join(dice.choices(lines, k=130000)))
    for i in range(200):
        (root / f"small{i}.txt").write_text("".join(dice.choices(lines, k=dice.randrange(60))))
    with open(root / "docs.jsonl", "w") as out:
        for i in range(20000):
            out.write(json.dumps({"id": i, "text": "".join(dice.choices(lines, k=2))}) + "\n")
    (root / "picture.bin").write_bytes(bytes(range(256)) * 10)


def contents(folder):
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.rglob("*")) if p.is_file()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("penstock")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokenizer", default="bytes")
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    root = pathlib.Path(tempfile.mkdtemp(prefix="penstock-tokenize-"))
    text = root / "text"
    text.mkdir()
    make_text(text, dice)

    def command(out):
        return [arguments.penstock, "tokenize", str(text), "--out", str(out), "--validation", "0.1", "--tokenizer",
                arguments.tokenizer, "--threads", str(dice.randrange(1, 4)), "--part", f"{dice.randrange(1, 4)} MiB",
                "--json"]

    started = time.time()
    done = subprocess.run(command(root / "reference"), capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr)
        return 1
    whole = time.time() - started
    reference = contents(root / "reference")
    print(f"reference: {len(reference)} files in {whole:.2f} s")

    kills = failures = resumed = number = 0
    while kills < arguments.kills and number < 20 * arguments.kills:
        number += 1
        out = root / f"run{number}"
        here = 0
        while True:
            process = subprocess.Popen(command(out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if here < 4 and kills < arguments.kills:
                time.sleep(dice.uniform(0.02, 1.0) * whole)
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
            output, errors = process.communicate()
            if process.returncode == -signal.SIGKILL:
                kills += 1
                here += 1
                continue
            break
        if process.returncode != 0:
            print(f"run {number} after {here} kills: exit {process.returncode}: {errors}")
            failures += 1
            continue
        summary = json.loads(output)
        resumed += here > 0 and (summary["resumed_bytes"] > 0 or summary["complete_before"])
        same = contents(out) == reference
        failures += not same
        print(f"run {number}: {here} kills, {summary['resumed_bytes']} bytes were done before, "
              f"{'equal files' if same else 'DIFFERENT: ' + str(contents(out)) + ' and not ' + str(reference)}", flush=True)
        shutil.rmtree(out)
    print(f"{kills} kills, {number} runs, {resumed} went on from parts, {failures} failures")
    shutil.rmtree(root, ignore_errors=True)
    return 1 if failures or kills < arguments.kills or resumed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
