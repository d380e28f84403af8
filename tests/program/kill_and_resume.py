#!/usr/bin/env python3
"""kill -9 at a random moment and resume, many times: the end has the bits of the run that nobody disturbed.

usage: kill_and_resume.py PENSTOCK [--kills N] [--seed S]

One computation (reproducible, dropout on, a checkpoint every step, written while training goes on). An undisturbed run
gives the reference. Then, N times over: the run is started, killed with SIGKILL, and started again, each time in
another layout with the same micro-batches, until it is complete. A third of the kills come after a random delay, a
third as soon as a save is under way, a third as soon as its manifest is being written or published. After every kill
the newest checkpoint that was published before it is there (or newer ones), so are all that `keep` holds beside the
newest, and every byte of all of them is verified. The
final checkpoint's tensors must be the reference's, bit for bit; metrics must name every step once. Prints one line per
run, what the kills hit, and a closing line; exit status 1 when anything differs. At least N kills must have hit a
running program.

Then the same with SIGINT and SIGTERM, which end a run after the step it is in: exit status 128 + signal, one line that
says so, and no step lost.

And kills from the first moment on: a short run, fresh or from a checkpoint, is killed as soon as its lock, its record,
its first save or its first checkpoint appears; the same command must then start, or go on, and end with the bits of the
run that nobody disturbed.
"""
import argparse
import collections
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CONFIG = """
[train]
steps = 24
batch = 8
micro_batch = 1
[model]
layers = 4
hidden = 64
heads = 4
dropout = 0.1
[data]
source = "text"
path = "{corpus}"
sequence = 32
[optimizer]
lr = 1e-3
warmup = 4
clip = 0.5
[numerics]
reproducible = true
[checkpoint]
every = 1
keep = {keep}
"""
KEEP = 3

LAYOUTS = [
    [],
    ["parallel.pipeline=2"],
    ["parallel.data=2"],
    ["parallel.pipeline=2", "parallel.schedule=zb-h1"],
    ["parallel.pipeline=2", "parallel.chunks=2", "parallel.schedule=interleaved-1f1b"],
    ["parallel.data=2", "parallel.pipeline=2", "parallel.recompute=full"],
    ["parallel.data=4"],
]


def command(penstock, config, run, layout):
    sets = [f"--set=run.dir={run}"] + [f"--set={s}" for s in layout]
    return [penstock, "train", str(config), "--json"] + sets


def verified(penstock, run):
    """What `checkpoint verify` says of each checkpoint, by name; None when there is none."""
    done = subprocess.run([penstock, "checkpoint", "verify", str(run), "--json"], capture_output=True, text=True)
    if done.returncode == 2:
        return None
    return {pathlib.Path(c["path"]).name: c for c in json.loads(done.stdout)["checkpoints"]}


def final_tensors(penstock, run):
    newest = (run / "checkpoints" / "latest").read_text().strip()
    return newest, verified(penstock, run)[newest]["tensors"]


def published(run):
    return sorted(p.name for p in (run / "checkpoints").glob("step-????????"))


def wait_for(process, run, moment):
    """Returns when the moment to kill has come, or the program has ended."""
    checkpoints = run / "checkpoints"
    while process.poll() is None:
        for folder in checkpoints.glob("step-*.tmp-*"):
            if moment == "writing" or (folder / "state.json").exists():
                return
        if moment == "publishing" and any(checkpoints.glob("latest.*")):
            return
        time.sleep(0.0002)


def hit(run):
    """What a kill interrupted, by what it left."""
    checkpoints = run / "checkpoints"
    if any((f / "state.json").exists() for f in checkpoints.glob("step-*.tmp-*")) or any(checkpoints.glob("latest.*")):
        return "publication"
    if any(checkpoints.glob("step-*.tmp-*")):
        return "writes"
    return "steps"


def early_moments(run):
    """What to wait for, in the order in which it appears."""
    return {"lock": lambda: (run / "lock").exists(),
            "record": lambda: any(run.glob("run.json*")),
            "save": lambda: any(run.glob("checkpoints/step-*.tmp-*")),
            "checkpoint": lambda: any(run.glob("checkpoints/step-????????"))}


def kill_early_and_repeat(penstock, config, root):
    """Failures of eight runs of three steps, each killed up to three times before its first checkpoint, or soon after."""
    failures = kills = 0
    found = collections.Counter()
    for mode in ("fresh", "from"):
        more = ["train.steps=3"] if mode == "fresh" else [f"checkpoint.resume={root / 'early-fresh0'}", "train.steps=6"]
        expected = None
        for number, names in enumerate([[], ["lock", "record", "save"], ["record", "lock", "lock"],
                                        ["save", "save", "record"], ["lock", "save", "checkpoint"]]):
            run = root / f"early-{mode}{number}"
            for name in names:
                process = subprocess.Popen(command(penstock, config, run, more), stdout=subprocess.DEVNULL,
                                           stderr=subprocess.PIPE, text=True)
                arrived = early_moments(run)[name]
                fresh = not arrived()  # else it has appeared before: after a moment, wherever that is
                if not fresh:
                    time.sleep(0.02 * (1 + number))
                while fresh and process.poll() is None and not arrived():
                    time.sleep(0.0001)
                process.send_signal(signal.SIGKILL)
                _, errors = process.communicate()
                if process.returncode not in (0, -signal.SIGKILL):
                    print(f"early kill, {mode} {names}: exit {process.returncode}: {errors}")
                    failures += 1
                kills += process.returncode == -signal.SIGKILL
                found["no record" if not (run / "run.json").exists() else
                      "no checkpoint" if not published(run) else "checkpoint"] += 1
                if published(run) and mode == "from":
                    break  # such a command does not go on with its own run: checkpoint.resume names another one
            resume = ["checkpoint.resume=auto"] if published(run) else []
            done = subprocess.run(command(penstock, config, run, more + resume), capture_output=True, text=True)
            result = final_tensors(penstock, run) if done.returncode == 0 else done.stderr
            expected = expected or result
            if result != expected or done.returncode != 0:
                print(f"early kills {names}, {mode}: exit {done.returncode}, DIFFERENT: {result}")
                failures += 1
    print(f"{kills} early kills ({', '.join(f'{n} left {what}' for what, n in sorted(found.items()))}), "
          f"{failures} failures", flush=True)
    return failures + (kills < 16)


def interrupt_and_resume(penstock, config, root, reference, dice):
    """Failures of four interrupted runs."""
    failures = interrupted = 0
    for number, sent in enumerate([signal.SIGINT, signal.SIGTERM] * 4):
        run = root / f"interrupted{number}"
        process = subprocess.Popen(command(penstock, config, run, dice.choice(LAYOUTS)), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        metrics = run / "metrics.jsonl"
        while process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n") >= 1 + number):
            time.sleep(0.002)
        process.send_signal(sent)
        _, errors = process.communicate()
        if process.returncode == 0:
            continue  # it was over before the signal came
        interrupted += 1
        steps = [json.loads(line)["step"] for line in metrics.read_text().splitlines()]
        saved = (run / "checkpoints" / "latest").read_text().strip()
        good = (process.returncode == 128 + sent and f"stopped after step {steps[-1]} of 24" in errors
                and saved == f"step-{steps[-1]:08d}")
        done = subprocess.run(command(penstock, config, run, dice.choice(LAYOUTS)), capture_output=True, text=True)
        same = done.returncode == 0 and final_tensors(penstock, run) == reference
        failures += not (good and same)
        print(f"{sent.name} after step {steps[-1]}: exit {process.returncode}, saved {saved}, "
              f"{'equal bits' if same else 'DIFFERENT ' + done.stderr}{'' if good else ' ' + errors}", flush=True)
        if interrupted == 4:
            break
    return failures + (interrupted < 4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("penstock")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    root = pathlib.Path(tempfile.mkdtemp(prefix="penstock-kill-"))
    corpus = root / "corpus.txt"
    corpus.write_text("".join(f"line {i}: {'abcdefghij'[i % 10] * (i % 7)} the quick brown fox {i * i}\n" for i in range(2000)))
    config = root / "kill.toml"
    config.write_text(CONFIG.format(corpus=corpus, keep=KEEP))

    started = time.time()
    done = subprocess.run(command(arguments.penstock, config, root / "reference", []), capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr)
        return 1
    whole = time.time() - started
    reference = final_tensors(arguments.penstock, root / "reference")

    kills, failures, run_number = 0, 0, 0
    hits = collections.Counter()
    while kills < arguments.kills:
        run_number += 1
        run = root / f"run{run_number}"
        kills_here, used = 0, []
        while True:
            layout = dice.choice(LAYOUTS)
            used.append(LAYOUTS.index(layout))
            process = subprocess.Popen(command(arguments.penstock, config, run, layout), stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            if kills_here < 4 and kills < arguments.kills:
                moment = ("delay", "writing", "publishing")[(kills + kills_here) % 3]
                time.sleep(dice.uniform(0.05, 0.9 if moment == "delay" else 0.6) * whole)
                if moment != "delay":
                    wait_for(process, run, moment)
                before = published(run)
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    process.communicate()
                    kills += 1
                    kills_here += 1
                    hits[hit(run)] += 1
                    left = verified(arguments.penstock, run)
                    # Pruned are the oldest, after a publication: the last `keep` of all that were seen are there.
                    lost = [name for name in sorted({*before, *(left or {})})[-KEEP:] if name not in (left or {})]
                    damaged = [c for c in (left or {}).values() if not c["ok"]]
                    if lost or damaged:
                        print(f"run {run_number}: published before the kill {before}, after it {sorted(left or {})}, lost {lost}, "
                              f"damaged {[c['error'] for c in damaged]}")
                        failures += 1
                    continue
            _, errors = process.communicate()
            if process.returncode != 0:
                print(f"run {run_number}: exit {process.returncode}: {errors}")
                failures += 1
            break
        if failures:
            break
        same = final_tensors(arguments.penstock, run) == reference
        steps = [json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()]
        once = steps == list(range(1, 25))
        failures += not (same and once)
        print(f"run {run_number}: {kills_here} kills, layouts {used}: {'equal bits' if same else 'DIFFERENT'}"
              f"{'' if once else ', metrics ' + str(steps)}", flush=True)
    if not failures:
        failures += kill_early_and_repeat(arguments.penstock, config, root)
    if not failures:
        failures += interrupt_and_resume(arguments.penstock, config, root, reference, dice)
    print(f"{kills} kills ({', '.join(f'{n} during {what}' for what, n in sorted(hits.items()))}), {run_number} runs, "
          f"{failures} failures")
    shutil.rmtree(root, ignore_errors=True)
    return 1 if failures or kills < arguments.kills else 0


if __name__ == "__main__":
    sys.exit(main())
