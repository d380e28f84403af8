#!/usr/bin/env python3
"""Wrong input to the program: exit code 2, one message that says what would work, nothing overwritten.

usage: bad_input.py PENSTOCK
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

GOOD = """
[train]
steps = 2
batch = 4
micro_batch = 1
[model]
layers = 2
hidden = 32
heads = 4
[data]
source = "text"
path = "{path}"
sequence = 16
"""


def main():
    penstock = str(pathlib.Path(sys.argv[1]).resolve())
    root = pathlib.Path(tempfile.mkdtemp(prefix="penstock-bad-"))
    (root / "text.txt").write_text("to be or not to be, that is the question\n" * 200)
    (root / "binary.bin").write_bytes(bytes(range(256)) * 100)
    config = root / "good.toml"
    config.write_text(GOOD.format(path=root / "text.txt"))
    failures, checks = [], 0

    def run(arguments):
        return subprocess.run([penstock] + [str(a) for a in arguments], capture_output=True, text=True, errors="replace",
                              cwd=root)

    def expect(name, arguments, *words, code=2, lines=12):
        nonlocal checks
        checks += 1
        result = run(arguments)
        message = result.stderr.strip()
        problems = []
        if result.returncode != code:
            problems.append(f"exit {result.returncode}, not {code}")
        for word in words:
            if word not in message:
                problems.append(f"the message does not name '{word}'")
        if "terminate" in message or "Exception raised from" in message or message.count("\n") > lines:
            problems.append("not one clear message")
        if problems:
            failures.append(f"{name}: {'; '.join(problems)}\n    {message[:600]}")

    def train(*sets, base=config):
        return ["train", base, "--set", f"run.dir={root / 'run'}"] + [x for s in sets for x in ("--set", s)]

    expect("misspelled key", train("train.stpes=3"), "stpes", "did you mean", "steps")
    misspelled = root / "misspelled.toml"
    misspelled.write_text(config.read_text() + "\n[optimizer]\ngradient_cliping = 1.0\nlearning_rate = 1\n")
    expect("misspelled key in a file", train(base=misspelled), "misspelled.toml:", "gradient_cliping")
    expect("impossible mesh", train("parallel.pipeline=9"), "parallel.pipeline", "layers")
    expect("zero ranks", train("parallel.data=0"), "parallel.data")
    expect("route that does not fit", train("parallel.pipeline=2", "parallel.route=v"), "route")
    expect("batch that does not divide", train("train.micro_batch=3"), "3", "4")
    expect("missing configuration", ["train", root / "nothing.toml"], "nothing.toml")
    expect("missing corpus", train(f"data.path={root / 'nothing.txt'}"), "nothing.txt")
    expect("binary corpus", train(f"data.path={root / 'binary.bin'}"), "binary.bin")
    expect("unknown schedule", train("parallel.schedule=1f1c"), "did you mean", "1f1b")
    expect("heads that do not divide", train("model.heads=5"), "heads")
    expect("unknown sub-command", ["trian", config])
    expect("no sub-command", [], "SUBCOMMAND", lines=40)
    expect("malformed TOML", ["check", root / "text.txt"], "text.txt")
    broken = root / "broken.toml"
    broken.write_text("[train\nsteps = 1\n")
    expect("TOML that does not parse", ["check", broken], "broken.toml:1")
    expect("compare without a second", ["compare", config], "--oracle")
    expect("generate from nothing", ["generate", root / "nowhere"], "nowhere")
    expect("report of nothing", ["report", root / "nowhere"], "nowhere")
    expect("schedule of no ranks", ["schedule", "1f1b", "--ranks", "0", "--microbatches", "4"])
    expect("key without effect", train("optimizer.momentum=0.9"), "optimizer.momentum", "sgd")

    # A good run, then things that must not touch it.
    good = run(train())
    checks += 1
    if good.returncode != 0:
        failures.append(f"good run: exit {good.returncode}\n    {good.stderr[:600]}")
    before = {p: p.read_bytes() for p in (root / "run").rglob("*") if p.is_file()}
    expect("another computation in the same directory", train("model.hidden=64"), "model.hidden", "run.overwrite")
    expect("never resume over a run", train("checkpoint.resume=never"), "run.overwrite")
    (root / "foreign").mkdir()
    (root / "foreign" / "thesis.txt").write_text("years of work")
    expect("a directory of something else", ["train", config, "--set", f"run.dir={root / 'foreign'}"], "foreign")
    expect("that stays even with overwrite off", ["train", config, "--set", f"run.dir={root / 'text.txt'}"], "text.txt")
    after = {p: p.read_bytes() for p in (root / "run").rglob("*") if p.is_file()}
    checks += 1
    if before != after:
        failures.append("files of the good run changed: " + ", ".join(str(p) for p in set(before) ^ set(after)) or "contents")
    complete = run(train())
    checks += 1
    if complete.returncode != 0 or {p: p.read_bytes() for p in (root / "run").rglob("*") if p.is_file()} != before:
        failures.append(f"a complete run is not left alone: exit {complete.returncode}")

    # Truncated checkpoints: named, and not loaded.
    newest = (root / "run" / "checkpoints" / "latest").read_text().strip()
    model = next((root / "run" / "checkpoints" / newest).glob("shard-*"))
    whole = model.read_bytes()
    for size in (0, 4, 100, len(whole) // 2, len(whole) - 1):
        model.write_bytes(whole[:size])
        expect(f"checkpoint cut to {size} bytes", ["generate", model.parent, "--tokens", "2"], model.name)
    # generate reads the weights alone, so a bit of the optimizer state does not concern it; verify reads all.
    header = 8 + int.from_bytes(whole[:8], "little")
    for places in (range(header, len(whole), 64), [len(whole) - 3]):
        flipped = bytearray(whole)
        for place in places:
            flipped[place] ^= 0x40
        model.write_bytes(bytes(flipped))
        if len(places) > 1:
            expect("flipped bits", ["generate", model.parent, "--tokens", "2"], "hash")
        verified = run(["checkpoint", "verify", model.parent])
        checks += 1
        if verified.returncode != 1 or "hash" not in verified.stdout:
            failures.append(f"verify of {len(places)} flipped bits: exit {verified.returncode}, {verified.stdout[:600]}")
    model.write_bytes(whole)

    # A model of bytes makes bytes that are no text; what is shown is text all the same.
    made = subprocess.run([penstock, "generate", str(root / "run"), "--tokens", "200", "--temperature", "5"],
                          capture_output=True)
    checks += 1
    try:
        shown = made.stdout.decode("utf-8")  # strict
        if made.returncode != 0 or "\ufffd" not in shown:
            failures.append(f"generate at a high temperature: exit {made.returncode}, {shown[:300]!r}")
    except UnicodeDecodeError as error:
        failures.append(f"generate wrote what is no UTF-8: {error}")
    wild = ["--top-p", "0"], ["--top-k", "-1"], ["--tokens", "0"], ["--samples", "0"], ["--prompt", "a", "--prompt-file", "b"]
    for arguments in wild:
        expect(f"generate {' '.join(arguments)}", ["generate", root / "run"] + arguments, arguments[0])

    # A run in progress is neither joined nor moved aside; and a truncated checkpoint is no start over.
    busy = subprocess.Popen([str(a) for a in [penstock, "train", config, "--set", f"run.dir={root / 'busy'}",
                                              "train.steps=100000"]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while busy.poll() is None and not (root / "busy" / "metrics.jsonl").exists():
        time.sleep(0.01)
    expect("a directory in use", ["train", config, "--set", f"run.dir={root / 'busy'}"], "in use")
    expect("overwriting a directory in use",
           ["train", config, "--set", f"run.dir={root / 'busy'}", "run.overwrite=true", "run.seed=7"], "in use")
    busy.terminate()
    checks += 1
    if busy.wait() != 128 + 15 or not (root / "busy" / "checkpoints" / "latest").exists():
        failures.append(f"a terminated run saves its state: exit {busy.returncode}")
    saved = root / "busy" / "checkpoints" / (root / "busy" / "checkpoints" / "latest").read_text().strip()
    next(saved.glob("shard-*")).write_bytes(whole[:100])
    expect("resuming from a checkpoint cut short", ["train", config, "--set", f"run.dir={root / 'busy'}"],
           "checkpoints", "run.overwrite")

    # Moved aside, not deleted.
    moved = run(train("model.hidden=64", "run.overwrite=true"))
    checks += 1
    old = root / "run.old-1"
    if moved.returncode != 0 or not (old / "run.json").exists():
        failures.append(f"overwrite did not move the old run aside: exit {moved.returncode}\n    {moved.stderr[:400]}")

    for failure in failures:
        print("FAILED", failure)
    print(f"{checks} checks, {len(failures)} failures")
    shutil.rmtree(root, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
