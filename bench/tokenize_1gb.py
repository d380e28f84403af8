#!/usr/bin/env python3
"""`penstock tokenize` on a gigabyte: memory, rate, progress, and a kill in the middle.

usage: tokenize_1gb.py PENSTOCK [--mb 1000] [--tokenizer PATH|bytes|small] [--threads N]

Makes text of many kinds in a temporary folder: the Python standard library's sources and generated text in several
scripts, as one file of half the size, one .jsonl and files of a few hundred kilobytes. Then tokenizes it twice: once
undisturbed, once killed with SIGKILL half-way and started again. Prints peak memory (VmHWM), MB/s, tokens, the longest
silence between lines of progress, and whether the files of both are equal. Exit status 1 when they are not, when memory
passes 512 MiB, or when nothing is said for two seconds.

"small" is a byte-level BPE with the pieces of Llama 3 and 2000 merges, made from the same text (small_bpe.py).
"""
import argparse
import glob
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "program"))
import small_bpe

SCRIPTS = [(0x61, 26), (0x3B1, 25), (0x430, 32), (0x5D0, 27), (0x627, 36), (0x905, 50), (0xE01, 46), (0x3041, 83),
           (0x4E00, 3000), (0xAC00, 2000), (0x1F600, 60)]


def generated(dice, characters):
    out = []
    size = 0
    while size < characters:
        first, count = dice.choice(SCRIPTS)
        words = ["".join(chr(first + dice.randrange(count)) for _ in range(dice.randint(1, 9))) for _ in range(200)]
        for _ in range(dice.randint(3, 30)):
            line = " ".join(dice.choices(words, k=dice.randint(1, 18))) + dice.choice([".\n", "\n", "\n\n", "!\n  ", " 12345\n"])
            out.append(line)
            size += len(line)
    return "".join(out)


def make_text(folder, megabytes, dice):
    """About so many MB; returns a sample for the tokenizer."""
    library = sorted(glob.glob(sysconfig.get_paths()["stdlib"] + "/*.py"))
    blocks = [pathlib.Path(p).read_text(encoding="utf-8", errors="replace") for p in library]
    blocks = ["".join(blocks[i::40]) for i in range(40)] + [generated(dice, 200_000) for _ in range(20)]
    sample = "".join(b[:5_000] for b in blocks)
    encoded = [b.encode() for b in blocks]
    total = megabytes * 1_000_000

    def fill(path, size, as_json=False):
        written = 0
        with open(path, "wb") as out:
            while written < size:
                block = dice.choice(encoded)
                if as_json:
                    text = block.decode()
                    at = dice.randrange(len(text))
                    block = (json.dumps({"id": written, "text": text[at:at + dice.randrange(8000)]},
                                        ensure_ascii=dice.random() < 0.5) + "\n").encode()
                written += out.write(block[:size - written] if not as_json and size - written < len(block) else block)

    fill(folder / "big.txt", total // 2)
    fill(folder / "documents.jsonl", total // 4, as_json=True)
    for i in range(max(1, total // 4 // 400_000)):
        fill(folder / f"file{i:05d}.txt", min(400_000, total // 4))
    return sample


def peak(pid):
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0


def run(command, kill_after=None):
    """(exit status, peak MiB, seconds, longest silence, lines, stdout)"""
    started = last = time.time()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    silence, lines, memory = [0.0], [], 0.0

    def listen():
        nonlocal last
        for line in process.stderr:
            now = time.time()
            silence[0] = max(silence[0], now - last)
            last = now
            lines.append(line.rstrip())

    listener = threading.Thread(target=listen)
    listener.start()
    while process.poll() is None:
        memory = max(memory, peak(process.pid))
        if kill_after is not None and time.time() - started > kill_after:
            process.send_signal(signal.SIGKILL)
            kill_after = None
        time.sleep(0.02)
    output = process.stdout.read()
    listener.join()
    ended = time.time()
    silence[0] = max(silence[0], ended - last)
    return process.returncode, memory, ended - started, silence[0], lines, output


def digest(path):
    sum_ = hashlib.sha256()
    with open(path, "rb") as source:
        while block := source.read(1 << 20):
            sum_.update(block)
    return sum_.hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("penstock")
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--tokenizer", default="small")
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    root = pathlib.Path(tempfile.mkdtemp(prefix="penstock-gigabyte-"))
    text = root / "text"
    text.mkdir()
    sample = make_text(text, arguments.mb, random.Random(1))
    size = sum(p.stat().st_size for p in text.iterdir())
    print(f"text: {size / 1e6:.0f} MB in {len(list(text.iterdir()))} files", flush=True)
    tokenizer = arguments.tokenizer
    if tokenizer == "small":
        tokenizer = root / "tokenizer.json"
        tokenizer.write_text(small_bpe.tokenizer_json(sample, 2000, small_bpe.LLAMA3))

    def command(out):
        return [arguments.penstock, "tokenize", str(text), "--out", str(root / out), "--tokenizer", str(tokenizer),
                "--validation", "0.05", "--threads", str(arguments.threads), "--json"]

    code, memory, seconds, silence, lines, output = run(command("whole"))
    if code != 0:
        print("\n".join(lines))
        return 1
    made = json.loads(output)
    tokens = made["train"]["tokens"] + made["validation"]["tokens"]
    print("\n".join(lines[:2] + ["..."] + lines[-1:]))
    print(f"undisturbed: {seconds:.1f} s, {size / 1e6 / seconds:.1f} MB/s, {tokens / 1e6:.1f} M tokens, peak memory {memory:.0f} MiB, "
          f"longest silence {silence:.2f} s", flush=True)
    killed = run(command("killed"), kill_after=seconds / 2)
    resumed = run(command("killed"))
    done = json.loads(resumed[5])
    print(f"killed after {killed[2]:.1f} s (status {killed[0]}); resumed after {done['resumed_bytes'] / 1e6:.0f} MB, {resumed[2]:.1f} s, "
          f"peak memory {max(killed[1], resumed[1]):.0f} MiB", flush=True)
    same = all(digest(root / "whole" / n) == digest(root / "killed" / n) for n in ("train.tokens", "validation.tokens", "tokenize.json"))
    print("files: " + ("equal" if same else "DIFFERENT"))
    shutil.rmtree(root, ignore_errors=True)
    silent = max(silence, killed[3], resumed[3])
    print(f"longest silence of all runs: {silent:.2f} s")
    good = same and killed[0] == -signal.SIGKILL and done["resumed_bytes"] > 0 and silent <= 2 and max(memory, killed[1], resumed[1]) < 512
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
