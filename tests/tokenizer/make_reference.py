"""Tokenizers made, and texts encoded, by the packages `tokenizers` and `sentencepiece`, for reference_test.cc.

usage: make_reference.py FOLDER MEGABYTES

FOLDER/documents       of each document: its length in bytes (u32), its bytes
FOLDER/NAME/...        the files of a tokenizer
FOLDER/NAME/ids        of each document: how many ids (u32), the ids (i32); special tokens in the text are plain text
FOLDER/NAME/specials   the same with special tokens recognised
FOLDER/NAME/decoded    what the reference decodes from `ids`, where it gives UTF-8 for UTF-8: lengths and bytes
"""
import glob
import json
import os
import random
import struct
import sys
import sysconfig
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
OTHER = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")

EDGES = [
    "", " ", "\n", "\t", "a", "hello" + " " * 7 + "world", "  leading", "trailing  ", "\n\n\n", " \n \n x", "a\r\nb\r\n",
    "don't can't WE'LL I'M you'Re 'S 'ſ it'ſ", "x='s'", "1234567890 12 ١٢٣ ⅷ ½", "e\u0301 é \u1e9b\u0323 ﬁ Å \u212b",
    "日本語のテキスト 中文文本 한국어 텍스트", "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f1e9\U0001f1ea",
    "<|endoftext|>", "a<|endoftext|>b <|endoftext|> \n<|endoftext|><|endoftext|>", "<s>not special</s>", "</s>", "<|im_end|>",
    "\u00a0nbsp\u2003em\u3000ideographic\u200bzero\u180evowel\u0085nel\u2028line", "مرحبا بالعالم", "שלום עולם", "Привет, мир!",
    "ไทย ภาษา", "हिन्दी में", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒳", "\ufeffbom", "\ufffd replaced", "a\u0000b", "▁lower▁one", "Ġ is a letter", "<0x41>",
    "İstanbul ŞIMŞEK ẞ", "a" * 300, "ab" * 200, " " * 130, "=" * 200, "\t\t\t\tif x:\n\t\t\t\t\treturn\n",
]
EDGES += ["hello" + " " * n + "world" for n in range(1, 100)]


def comparable(code):
    """Do the reference's tables, which are of an older Unicode for normalization, agree with Python's about it?"""
    c = chr(code)
    if (normalizers.StripAccents().normalize_str(c) == "") != unicodedata.category(c).startswith("M"):
        return False
    if normalizers.Lowercase().normalize_str(c) != c.lower():
        return False
    for text in (c, "a\u0315" + c + "\u0300", c + "\u0301"):
        for form, normalizer in (("NFC", normalizers.NFC()), ("NFKD", normalizers.NFKD())):
            if normalizer.normalize_str(text) != unicodedata.normalize(form, text):
                return False
    return True


def documents(megabytes):
    rng = random.Random(5)
    out = list(EDGES)
    excluded = 0
    codes = []
    while len(codes) < 6000:
        code = rng.choice((rng.randrange(0x20, 0x3000), rng.randrange(0x3000, 0xD800), rng.randrange(0xE000, 0x20000)))
        if unicodedata.category(chr(code)) in ("Cn", "Cs"):
            continue
        if not comparable(code):
            excluded += 1
            continue
        codes.append(code)
    scripts = [range(0x41, 0x5B), range(0x61, 0x7B), range(0xC0, 0x180), range(0x391, 0x3CA), range(0x410, 0x450),
               range(0x5D0, 0x5EB), range(0x621, 0x64B), range(0x905, 0x93A), range(0xE01, 0xE31), range(0x3041, 0x3097),
               range(0x30A1, 0x30FB), range(0x4E00, 0x9FA6), range(0xAC00, 0xD7A4), range(0x1F300, 0x1F650)]
    spaces = [" ", " ", " ", " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n", "\u00a0", "\u3000"]
    marks = "\u0300\u0301\u0302\u0303\u0308\u0327\u0323\u20dd\ufe0f\u200d"
    sources = []
    for path in sorted(glob.glob(os.path.join(sysconfig.get_paths()["stdlib"], "*.py"))):
        with open(path, encoding="utf-8", errors="ignore", newline="") as file:
            sources.append(file.read())
    total = sum(len(d.encode()) for d in out)
    limit = megabytes * 1e6
    i = 0
    while total < limit:
        kind = i % 4
        if kind == 0:  # a piece of a program
            source = sources[(i // 4) % len(sources)]
            at = rng.randrange(max(1, len(source) - 4000))
            text = source[at:at + rng.randrange(200, 4000)]
        elif kind == 1:  # words of many scripts
            words = []
            for _ in range(rng.randrange(20, 400)):
                script = rng.choice(scripts)
                word = "".join(chr(rng.choice(script)) for _ in range(rng.randrange(1, 12)))
                if rng.random() < 0.2:
                    word += rng.choice(marks) * rng.randrange(1, 3)
                if rng.random() < 0.1:
                    word += rng.choice(["'s", "'t", "'re", "'LL", "’s", ".", ",", "!?", "...", "/", "-", "_", "(x)"])
                if rng.random() < 0.1:
                    word = str(rng.randrange(10 ** rng.randrange(1, 12)))
                words.append(word + rng.choice(spaces))
            text = "".join(words)
        elif kind == 2:  # any characters
            text = "".join(chr(rng.choice(codes)) for _ in range(rng.randrange(10, 800)))
        else:  # white space and marks
            alphabet = "  \n\t\r\u00a0\u2003ab1'.\u0301é" + marks
            text = "".join(rng.choice(alphabet) for _ in range(rng.randrange(10, 400)))
        out.append(text)
        total += len(text.encode())
        i += 1
    print(f"{len(out)} documents, {total} bytes; {excluded} draws of characters on which Unicode versions differ left out")
    return out


def bpe(pre, normalizer=None, decoder=None, model=None, trainer=None):
    tokenizer = Tokenizer(model or models.BPE())
    tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoder or decoders.ByteLevel()
    return tokenizer, trainer or {}


def make_tokenizers():
    def split(pattern):
        return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made = {}
    made["gpt2"] = bpe(pre_tokenizers.ByteLevel(add_prefix_space=False))
    made["prefix"] = bpe(pre_tokenizers.ByteLevel(add_prefix_space=True))
    made["llama3"] = bpe(split(LLAMA3), model=models.BPE(ignore_merges=True))
    made["qwen2"] = bpe(split(QWEN2), normalizer=normalizers.NFC())
    made["other"] = bpe(split(OTHER))
    made["digits"] = bpe(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                  pre_tokenizers.Punctuation(),
                                                  pre_tokenizers.ByteLevel(add_prefix_space=False)]))
    made["nfkd"] = bpe(pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                                pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)]),
                       normalizer=normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(),
                                                        normalizers.Lowercase()]))
    made["metaspace"] = bpe(pre_tokenizers.Metaspace(), decoder=decoders.Metaspace(),
                            model=models.BPE(unk_token="<unk>", fuse_unk=True), trainer={"limit_alphabet": 200})
    return made


def make_llama2(training, vocabulary_size, alphabet):
    """As Llama 2's: characters, with bytes for those that are missing; no pre-tokenizer."""
    base, options = make_tokenizers()["metaspace"]
    base.train_from_iterator(training, trainers.BpeTrainer(vocab_size=vocabulary_size, special_tokens=["<unk>", "<s>", "</s>"],
                                                           limit_alphabet=alphabet, show_progress=False))
    model = json.loads(base.to_str())["model"]
    vocabulary = {}
    for text in ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + sorted(
            (t for t in model["vocab"] if t not in ("<unk>", "<s>", "</s>")), key=model["vocab"].get):
        vocabulary[text] = len(vocabulary)
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]
    llama2 = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    llama2.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    llama2.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                        decoders.Strip(" ", 1, 0)])
    llama2.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<unk>", "<s>", "</s>")])
    llama2.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return llama2


def write_list(path, items, pack):
    with open(path, "wb") as file:
        for item in items:
            data = pack(item)
            file.write(data)


def pack_text(text):
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def pack_ids(ids):
    return struct.pack(f"<I{len(ids)}i", len(ids), *ids)


def encode(folder, tokenizer, texts):
    tokenizer.encode_special_tokens = True
    ids = [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)]
    write_list(f"{folder}/ids", ids, pack_ids)
    write_list(f"{folder}/decoded", [tokenizer.decode(i, skip_special_tokens=False) for i in ids], pack_text)
    tokenizer.encode_special_tokens = False
    write_list(f"{folder}/specials", [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)], pack_ids)


def main():
    folder, megabytes = sys.argv[1], float(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    texts = documents(megabytes)
    write_list(f"{folder}/documents", texts, pack_text)
    training = texts[:400]
    specials = ["<|endoftext|>", "<s>", "</s>", "<unk>"]
    for name, (tokenizer, options) in make_tokenizers().items():
        os.makedirs(f"{folder}/{name}", exist_ok=True)
        alphabet = pre_tokenizers.ByteLevel.alphabet() if name != "metaspace" else []
        trainer = trainers.BpeTrainer(vocab_size=3000, special_tokens=specials, initial_alphabet=alphabet,
                                      show_progress=False, **options)
        tokenizer.train_from_iterator(training, trainer)
        tokenizer.add_tokens([AddedToken("return self", normalized=False), AddedToken("ümlaut", normalized=True),
                              AddedToken("word", single_word=True), AddedToken("lef", lstrip=True),
                              AddedToken("righ", rstrip=True)])
        tokenizer.add_special_tokens([AddedToken("<|im_end|>", lstrip=True, special=True)])
        tokenizer.save(f"{folder}/{name}/tokenizer.json")
        encode(f"{folder}/{name}", tokenizer, texts)

    os.makedirs(f"{folder}/llama2", exist_ok=True)
    llama2 = make_llama2(training, 2500, 300)
    llama2.save(f"{folder}/llama2/tokenizer.json")
    encode(f"{folder}/llama2", llama2, texts)

    # GPT-2's pair of files.
    os.makedirs(f"{folder}/gpt2_files", exist_ok=True)
    gpt2 = Tokenizer.from_file(f"{folder}/gpt2/tokenizer.json")
    gpt2.model.save(f"{folder}/gpt2_files")
    plain, _ = make_tokenizers()["gpt2"]
    plain.model = models.BPE.from_file(f"{folder}/gpt2_files/vocab.json", f"{folder}/gpt2_files/merges.txt")
    plain.add_special_tokens(["<|endoftext|>"])
    encode(f"{folder}/gpt2_files", plain, texts)

    import sentencepiece
    # Of characters that are not here the model spells the bytes.
    lines = [line for text in training for line in text.split("\n") if line and all(0 < ord(c) < 0x180 for c in line)]
    for kind in ("unigram", "bpe"):
        os.makedirs(f"{folder}/sentencepiece_{kind}", exist_ok=True)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_prefix=f"{folder}/sentencepiece_{kind}/tokenizer", vocab_size=2000, model_type=kind, byte_fallback=True,
            character_coverage=1.0, minloglevel=2, hard_vocab_limit=False, num_threads=2)
        processor = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/sentencepiece_{kind}/tokenizer.model")
        ids = [processor.encode(text) for text in texts]
        write_list(f"{folder}/sentencepiece_{kind}/ids", ids, pack_ids)
        with open(f"{folder}/sentencepiece_{kind}/scores", "wb") as file:  # of each id, to tell ties from errors
            scores = [processor.get_score(i) for i in range(processor.get_piece_size())]
            file.write(struct.pack(f"<I{len(scores)}f", len(scores), *scores))
        write_list(f"{folder}/sentencepiece_{kind}/decoded", [processor.decode(i) for i in ids], pack_text)


if __name__ == "__main__":
    main()
