"""A byte-level BPE tokenizer made with the standard library alone, as a tokenizer.json.

usage: small_bpe.py OUT.json TEXT [MERGES]

Its pieces are those of GPT-2, or of Llama 3 with pattern=LLAMA3. For tests and benches: real in kind, small in size.
"""
import collections
import json
import re
import sys

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")


def letters():
    """The printable character that stands for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return {b: chr(b if b in plain else next(others)) for b in range(256)}


def train(text, merges):
    """Pairs in the order they are merged; pieces here are words with the space before them, and runs of white space."""
    letter = letters()
    pieces = collections.Counter(re.findall(r" ?\w+| ?[^\w\s]+|\s+", text))
    words = [([letter[b] for b in piece.encode()], n) for piece, n in pieces.items()]
    counts, where = collections.Counter(), collections.defaultdict(set)
    for w, (word, n) in enumerate(words):
        for pair in zip(word, word[1:]):
            counts[pair] += n
            where[pair].add(w)
    pairs = []
    while len(pairs) < merges and counts:
        best = max(counts.items(), key=lambda item: (item[1], item[0]))[0]
        pairs.append(best)
        for w in where.pop(best):
            word, n = words[w]
            for pair in zip(word, word[1:]):
                counts[pair] -= n
                if counts[pair] <= 0:
                    del counts[pair]
            out, i = [], 0
            while i < len(word):
                if tuple(word[i:i + 2]) == best:
                    out.append(word[i] + word[i + 1])
                    i += 2
                else:
                    out.append(word[i])
                    i += 1
            words[w] = (out, n)
            for pair in zip(out, out[1:]):
                counts[pair] += n
                where[pair].add(w)
    return pairs


def tokenizer_json(text, merges=500, pattern=""):
    pairs = train(text, merges)
    vocabulary = {c: i for i, c in enumerate(letters().values())}
    for a, b in pairs:
        vocabulary.setdefault(a + b, len(vocabulary))
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": not pattern}
    before = level
    if pattern:
        split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        before = {"type": "Sequence", "pretokenizers": [split, level]}
    end = {"id": len(vocabulary), "content": "<|endoftext|>", "single_word": False, "lstrip": False, "rstrip": False,
           "normalized": False, "special": True}
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [end], "normalizer": None,
        "pre_tokenizer": before, "post_processor": None, "decoder": {**level, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "vocab": vocabulary,
                  "merges": [f"{a} {b}" for a, b in pairs]}})


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as source:
        made = tokenizer_json(source.read(), int(sys.argv[3]) if len(sys.argv) > 3 else 500)
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write(made)
