#!/usr/bin/env python3
"""Encoding and training speed of this engine and of the package `tokenizers`, in pairs.

usage: tokenizer_speed.py TOKENIZER_BENCH [--mb 11] [--pairs 5] [--vocabulary 32000] [--text mixed packages] [--only NAME...]

Run it with the reference interpreter (scripts/reference.sh): ~/.cache/penstock/venv-reference/bin/python3.

Texts: "mixed" is what tests/tokenizer/make_reference.py makes (programs, words of many scripts, any characters, white
space); "packages" are the sources and documents of installed Python packages. Tokenizers: the patterns of GPT-2, Llama 3
and Qwen2 (with NFC) on bytes, and one of characters with bytes for those that are missing, as Llama 2's; trained by
`tokenizers` on a sixth of the text.

A measurement is a process of its own on one core (or two, for training on two threads), with nothing encoded before; it
times the work alone, not loading and reading. Of `tokenizers` that is encode_batch_fast, which keeps no offsets, without
the conversion of ids to Python's lists (TOKENIZERS_PARALLELISM=false, RAYON_NUM_THREADS=1). Each pair is one of either,
in alternating order. Printed are medians of the rates and of the ratios of the pairs, ours by theirs; and whether the
ids are the same. Exit status 1 when ids differ, or when a median ratio of encoding is below 1.
"""
import argparse
import glob
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent / "tests" / "tokenizer"))


def package_texts(megabytes):
    """Every n-th file of the installed packages, so that they have about that size together."""
    folder = sysconfig.get_paths()["purelib"]
    paths = [p for kind in ("py", "md", "txt", "rst") for p in glob.glob(f"{folder}/**/*.{kind}", recursive=True)]
    paths += glob.glob(sysconfig.get_paths()["stdlib"] + "/*.py")
    paths = sorted(p for p in paths if os.path.isfile(p))
    step = max(1, int(sum(map(os.path.getsize, paths)) / (megabytes * 1e6)))
    texts = [pathlib.Path(p).read_bytes().decode("utf-8", errors="ignore") for p in paths[::step]]
    return [t for t in texts if t]


def read_documents(path):
    data, texts, at = path.read_bytes(), [], 0
    while at < len(data):
        n, = struct.unpack_from("<I", data, at)
        texts.append(data[at + 4:at + 4 + n].decode())
        at += 4 + n
    return texts


def theirs_encode(tokenizer, documents, how, ids_path=None):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(tokenizer)
    tokenizer.encode_special_tokens = True
    texts = read_documents(pathlib.Path(documents))
    if how == "whole":
        texts = ["".join(texts)]
    start = time.perf_counter()
    encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    seconds = time.perf_counter() - start
    if ids_path:
        import make_reference
        make_reference.write_list(ids_path, [e.ids for e in encoded], make_reference.pack_ids)
    return {"seconds": seconds, "ids": sum(len(e.ids) for e in encoded)}


def theirs_train(documents, pattern, normalizer, vocabulary, threads):
    from tokenizers import pre_tokenizers, trainers
    import make_reference
    texts = read_documents(pathlib.Path(documents))
    tokenizer, _ = make_reference.make_tokenizers()[pattern]
    trainer = trainers.BpeTrainer(vocab_size=int(vocabulary), min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    start = time.perf_counter()
    tokenizer.train_from_iterator(texts, trainer)
    return {"seconds": time.perf_counter() - start, "vocabulary": tokenizer.get_vocab_size()}


def measure(command, cores):
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "true" if cores > 1 else "false", "RAYON_NUM_THREADS": str(cores)}
    chosen = sorted(os.sched_getaffinity(0))[:cores]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, env=environment, check=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, chosen))
    return json.loads(done.stdout.splitlines()[-1])


def pairs(ours, theirs, count, cores=1):
    """[(ours, theirs)] of `count` pairs."""
    out = []
    for i in range(count):
        if i % 2 == 0:
            a, b = measure(ours, cores), measure(theirs, cores)
        else:
            b, a = measure(theirs, cores), measure(ours, cores)
        out.append((a, b))
    return out


def report(name, megabytes, results):
    rates = [statistics.median(megabytes / one[i]["seconds"] for one in results) for i in (0, 1)]
    ratios = sorted(b["seconds"] / a["seconds"] for a, b in results)
    ratio = statistics.median(ratios)
    print(f"{name:46} {rates[0]:8.2f} {rates[1]:8.2f} MB/s   {ratio:6.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--mb", type=float, default=11)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--text", nargs="+", default=["mixed", "packages"])
    parser.add_argument("--only", nargs="+", default=["gpt2", "llama3", "qwen2", "llama2", "train"])
    arguments = parser.parse_args()
    import make_reference
    import tokenizers
    print(f"tokenizers {tokenizers.__version__}; {arguments.pairs} pairs; medians")
    good = True
    for kind in arguments.text:
        with tempfile.TemporaryDirectory(prefix="penstock-speed-") as folder:
            folder = pathlib.Path(folder)
            texts = make_reference.documents(arguments.mb) if kind == "mixed" else package_texts(arguments.mb)
            documents = folder / "documents"
            make_reference.write_list(documents, texts, make_reference.pack_text)
            megabytes = sum(len(t.encode()) for t in texts) / 1e6
            print(f"{kind}: {len(texts)} documents, {megabytes:.1f} MB{'':20}    ours   theirs          ratio (of pairs)")
            for name in ("gpt2", "llama3", "qwen2", "llama2"):
                if name not in arguments.only:
                    continue
                (folder / name).mkdir()
                file = folder / name / "tokenizer.json"
                if name == "llama2":
                    tokenizer = make_reference.make_llama2(texts[::6], arguments.vocabulary, 1000)
                else:
                    tokenizer, _ = make_reference.make_tokenizers()[name]
                    tokenizer.train_from_iterator(texts[::6], tokenizers.trainers.BpeTrainer(
                        vocab_size=arguments.vocabulary, special_tokens=["<|endoftext|>"], show_progress=False,
                        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
                tokenizer.save(str(file))
                for how in ("each", "whole"):
                    ours = [arguments.bench, "encode", folder / name, documents, how]
                    theirs = [sys.executable, HERE, "theirs-encode", file, documents, how]
                    measure([*ours, folder / "a"], 1), measure([*theirs, folder / "b"], 1)
                    same = (folder / "a").read_bytes() == (folder / "b").read_bytes()
                    label = f"encode, {name}, {tokenizer.get_vocab_size()} tokens, {'by document' if how == 'each' else 'one text'}"
                    ratio = report(label, megabytes, pairs(ours, theirs, arguments.pairs))
                    if not same:
                        print("    THE IDS DIFFER")
                    good = good and same and ratio >= 1
            if "train" in arguments.only:
                for pattern, normalizer in (("gpt2", "none"), ("llama3", "none"), ("qwen2", "nfc")):
                    for cores in (1, 2):
                        ours = [arguments.bench, "train", documents, pattern, normalizer, arguments.vocabulary, cores]
                        theirs = [sys.executable, HERE, "theirs-train", documents, pattern, normalizer, arguments.vocabulary, cores]
                        report(f"train, {pattern}, {arguments.vocabulary} tokens, {cores} core{'s' if cores > 1 else ''}", megabytes,
                               pairs(ours, theirs, arguments.pairs, cores))
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["theirs-encode"]:
        print(json.dumps(theirs_encode(*sys.argv[2:])))
    elif sys.argv[1:2] == ["theirs-train"]:
        print(json.dumps(theirs_train(*sys.argv[2:])))
    else:
        sys.exit(main())
