#!/usr/bin/env python3
"""Weights of the reference library, in and out: made by it, converted, evaluated by it and by this program, trained on,
converted back and loaded by it.   huggingface.py PENSTOCK LOGITS_PROBE
Runs itself with the Python of the reference packages (make reference); exit status 77 where there is none.

For GPT-2 and Llama shapes (tied and not, grouped-query attention, scaled RoPE, single file and shards):
  logits of 100 prompts differ by at most 1e-4; a conversion there and back gives the same bits; fine-tuned weights load
  in the reference library with equal logits; damaged folders are refused with the tensor named, and leave nothing.
"""
import json
import pathlib
import shutil
import sys
import tempfile

from reference import Program, torch  # starts this script again where need be
import transformers
from safetensors.torch import load_file, save_file

penstock = Program(sys.argv[1], sys.argv[2], pathlib.Path(tempfile.mkdtemp(prefix="penstock-hf-")))
work = penstock.work
checks = 0


def check(good, what):
    global checks
    checks += 1
    assert good, what


def models():
    small = dict(vocab_size=300, attn_implementation="eager")
    gpt2 = dict(n_embd=48, n_head=4, n_layer=3, n_positions=96, **small)
    llama = dict(hidden_size=48, num_attention_heads=4, num_hidden_layers=3, max_position_embeddings=96,
                 intermediate_size=80, **small)
    yield "gpt2", transformers.GPT2LMHeadModel(transformers.GPT2Config(**gpt2))
    yield "gpt2-untied", transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**gpt2, tie_word_embeddings=False, n_inner=64, layer_norm_epsilon=1e-4))
    make = lambda **kw: transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**llama, **kw}))
    yield "llama", make(num_key_value_heads=2)
    yield "llama-tied", make(tie_word_embeddings=True, rms_norm_eps=1e-4,
                             rope_parameters={"rope_type": "default", "rope_theta": 500000.0})
    yield "llama-linear", make(rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0})
    yield "llama3", make(num_key_value_heads=1, rope_parameters={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32, "rope_theta": 10000.0})


def main():
    torch.manual_seed(1)
    prompts = [torch.randint(0, 300, (1 + i % 96,)).tolist() for i in range(100)]
    worst = 0.0
    for name, model in models():
        model = model.eval()
        with torch.no_grad():  # larger than initial weights, biases and gains too: a swapped one would show
            for p in model.parameters():
                p.add_(torch.randn_like(p) * 0.1)
        folder, imported = work / f"{name}-hf", work / f"{name}-in"
        shards = {"max_shard_size": "40KB"} if "llama" in name else {}
        model.save_pretrained(folder, **shards)
        check(("llama" not in name) or (folder / "model.safetensors.index.json").exists(), "shards")
        penstock("checkpoint", "convert", folder, imported)
        difference = penstock.difference(model, imported, prompts)
        print(f"{name}: logits of 100 prompts differ by at most {difference:.2e}")
        worst = max(worst, difference)
        check(difference <= 1e-4, name)

        back = work / f"{name}-back"
        penstock("checkpoint", "convert", imported, back, "--max-shard", "64 KiB")
        again = transformers.AutoModelForCausalLM.from_pretrained(back, attn_implementation="eager").eval()
        state, was = again.state_dict(), model.state_dict()
        check(state.keys() == was.keys() and all(torch.equal(state[k], was[k]) for k in was), f"{name}: other bits back")
        with torch.no_grad():
            x = torch.tensor([prompts[95]])
            check(torch.equal(again(x).logits, model(x).logits), f"{name}: other logits from the export")
        penstock("checkpoint", "convert", imported, back, code=2)  # nothing is overwritten
        for key in ("bos_token_id", "eos_token_id"):
            check(getattr(again.config, key) == getattr(model.config, key), f"{name}: another {key}")
        check("--tokenizer" in penstock("generate", imported, "--prompt", "the", code=2), "the tokenizer is not known")
        penstock("generate", imported, "--prompt", "the", "--tokens", 2, "--tokenizer", "bytes")

        if name in ("gpt2", "llama"):
            text = work / "text.txt"
            text.write_text("the quick brown fox jumps over the lazy dog\n" * 400)
            run = work / f"{name}-run"
            out = penstock("train", imported / "config.toml", "--set", "data.source=text", "--set", f"data.path={text}",
                           "--set", "data.sequence=32", "--set", "train.steps=8", "--set", "train.batch=4", "--set",
                           "optimizer.lr=1e-3", "--set", f"run.dir={run}", "--set", "parallel.pipeline=2")
            check("everything else starts fresh" in out, out)
            losses = [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]
            check(losses[-1] < losses[0], losses)
            tuned = work / f"{name}-tuned"
            penstock("checkpoint", "convert", run, tuned)
            theirs = transformers.AutoModelForCausalLM.from_pretrained(tuned, attn_implementation="eager").eval()
            difference = penstock.difference(theirs, run, prompts)
            print(f"{name}: after 8 steps of training, exported: {difference:.2e}")
            check(difference <= 1e-4, name)
            check(not torch.equal(theirs.state_dict()[next(iter(was))], was[next(iter(was))]), "nothing was trained")

        half = work / f"{name}-bf16"
        penstock("checkpoint", "convert", imported, half, "--dtype", "bf16")
        narrow = transformers.AutoModelForCausalLM.from_pretrained(half, dtype=torch.bfloat16).state_dict()
        check(all(torch.equal(narrow[k], was[k].to(torch.bfloat16)) for k in was), f"{name}: bf16")
        penstock("checkpoint", "convert", half, work / f"{name}-from-bf16")

    with_tokenizer()
    with_sentencepiece()
    damaged()
    print(f"{checks} checks passed; largest difference of logits {worst:.2e}")
    shutil.rmtree(work)


def with_tokenizer():
    """The tokenizer goes with the weights, with its settings or without."""
    for name, special, with_settings, end in (("with", "<end>", True, "<end>"), ("usual", "<|endoftext|>", False, "<|endoftext|>"),
                                              ("without", "<end>", False, None)):
        made = work / f"{name}-tokenizer"
        penstock("tokenizer", "train", work / "text.txt", "--vocabulary", 290, "--out", made, "--special", special)
        if not with_settings:
            (made / "tokenizer_config.json").unlink()
        folder = work / f"{name}-settings"
        shutil.copytree(work / "llama-hf", folder)
        shutil.copytree(made, folder, dirs_exist_ok=True)
        penstock("checkpoint", "convert", folder, work / f"{name}-in")
        penstock("checkpoint", "convert", work / f"{name}-in", work / f"{name}-back")
        back = work / f"{name}-back"
        for file in made.iterdir():
            check((back / file.name).read_bytes() == file.read_bytes(), f"{name}: {file.name} is another one")
        ours = penstock("tokenizer", "inspect", work / f"{name}-in" / "tokenizer", "--text", "the lazy dog", "--json")
        theirs = transformers.AutoTokenizer.from_pretrained(back)
        check(theirs("the lazy dog", add_special_tokens=False)["input_ids"] == json.loads(ours)["text"]["ids"], f"{name}: other ids")
        check(theirs.eos_token == end, f"{name}: end of text is {theirs.eos_token}")
        out = penstock("generate", work / f"{name}-in", "--prompt", "the ", "--tokens", 3)
        check(out.startswith("the "), out)
        # Trained on with token files, from another folder; what config.json said of the end of texts stays.
        tokens, run = work / f"{name}-tokens", work / f"{name}-on-tokens"
        penstock("tokenize", work / "text.txt", "--tokenizer", made, "--out", tokens)
        train = ["train", work / f"{name}-in" / "config.toml", "--set", "data.source=tokens", "--set", f"data.path={tokens}",
                 "--set", "data.sequence=32", "--set", "train.steps=2", "--set", f"run.dir={run}"]
        penstock(*train)
        other = work / f"{name}-other"
        penstock("tokenizer", "train", work / "text.txt", "--vocabulary", 280, "--out", other)
        out = penstock(*train[:-1], f"run.dir={run}-2", "--set", f"data.tokenizer={other}", code=2)
        check("another tokenizer" in out, out)
        penstock("checkpoint", "convert", run, work / f"{name}-trained")
        was = json.loads((folder / "config.json").read_text())
        now = json.loads((work / f"{name}-trained" / "config.json").read_text())
        check(all(now[key] == was[key] for key in ("bos_token_id", "eos_token_id")), now)


def with_sentencepiece():
    """Both the SentencePiece library and libtorch bring protobuf: here they are in one process, at work."""
    import sentencepiece
    for kind in ("bpe", "unigram"):
        sentencepiece.SentencePieceTrainer.train(input=str(work / "text.txt"), model_prefix=str(work / kind), vocab_size=300,
                                                 model_type=kind, byte_fallback=True, minloglevel=2, hard_vocab_limit=False)
        text = "the quick na\u00efve fox \u6f22"
        ours = json.loads(penstock("tokenizer", "inspect", work / f"{kind}.model", "--text", text, "--json"))["text"]["ids"]
        theirs = sentencepiece.SentencePieceProcessor(model_file=str(work / f"{kind}.model")).encode(text)
        check(ours == theirs, f"{kind}: {ours}, the library {theirs}")
        run = work / f"{kind}-sp"
        (work / f"{kind}.toml").write_text(
            f'[train]\nsteps = 2\n[model]\nlayers = 1\nhidden = 32\nheads = 2\n[data]\nsource = "text"\nsequence = 32\n'
            f'path = "text.txt"\ntokenizer = "{kind}.model"\n')
        penstock("train", work / f"{kind}.toml", "--set", f"run.dir={run}")
        check(penstock("generate", run, "--prompt", "the", "--tokens", 3).startswith("the"), kind)


def damaged():
    """One error that lists all, exit 2, nothing left behind."""
    whole = load_file(work / "gpt2-hf" / "model.safetensors")
    config = (work / "gpt2-hf" / "config.json").read_text()

    def refused(name, *expected, tensors=None, config=config):
        folder = work / f"bad-{name}"
        folder.mkdir()
        (folder / "config.json").write_text(config)
        if tensors is not None:
            save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
        out = penstock("checkpoint", "convert", folder, work / f"bad-{name}-in", code=2)
        for part in expected:
            check(part in out, f"{name}: {part!r} is not in {out!r}")
        check(not list(work.glob(f"bad-{name}-in*")), f"{name} left something")

    names = list(whole)
    tensors = {k: v for k, v in whole.items() if k not in (names[3], names[7])}
    tensors["transformer.h.0.attn.surprise"] = torch.zeros(3)
    tensors[names[9]] = torch.zeros(5, 5)
    refused("three", names[3], names[7], "surprise", names[9], "[5, 5]", tensors=tensors)
    refused("none", "model.safetensors", tensors=None)
    refused("type", "qwen2", config=config.replace('"gpt2"', '"qwen2"'), tensors=whole)
    refused("gelu", "activation_function", config=config.replace("gelu_new", "relu"), tensors=whole)
    refused("json", "config.json", config=config[:40], tensors=whole)
    refused("head", "tie_word_embeddings", tensors={**whole, "lm_head.weight": torch.zeros(300, 48)})
    refused("ints", "I64", tensors={**whole, names[2]: whole[names[2]].long()})

    index = work / "llama-hf" / "model.safetensors.index.json"
    text = index.read_text()
    first = sorted(set(json.loads(text)["weight_map"].values()))[0]
    for name, new, part in (("outside", "../" + first, "no name of a file"), ("gone", "other.safetensors", "other")):
        index.write_text(text.replace(first, new))
        check(part in penstock("checkpoint", "convert", work / "llama-hf", work / f"bad-{name}", code=2), name)
    entry = json.loads(text)
    dropped = next(iter(entry["weight_map"]))
    del entry["weight_map"][dropped]
    index.write_text(json.dumps(entry))
    check(dropped in penstock("checkpoint", "convert", work / "llama-hf", work / "bad-dropped", code=2), "dropped")


main()
