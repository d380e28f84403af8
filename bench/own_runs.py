#!/usr/bin/env python3
"""How true predictions of our own runs are: two models, twelve plans each, on thread ranks of this machine.

    python3 bench/own_runs.py build/penstock --record exam/own [--rounds 5]

Every round runs each plan once, and between them runs whose profiles price all plans: one rank alone, and as many
replicas as the largest plan has computing at once, with each micro-batch size. A machine drifts by more than the error
that is looked for, so profiles come from the same minutes as the runs they predict. The step time of a plan is the
median over rounds of the median over steps, a profiled time the median over rounds. No run prices itself: profiles come
from runs of their own. Predictions are made by `penstock simulate` from the configuration of the run, on a machine file
that `penstock doctor --calibrate` writes first. Nothing else should run on the machine.

Prints per plan: predicted, measured, error, spread, memory; then what `penstock exam` holds them to. With --record the
runs, the profiles and the machine are kept for it.
"""
import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

MODELS = {
    "demo": ["model.family=llama", "model.layers=6", "model.hidden=192", "model.heads=6", "model.kv_heads=2",
             "train.batch=32"],
    "larger": ["model.family=gpt2", "model.layers=8", "model.hidden=320", "model.heads=5", "train.batch=16"],
}
COMMON = ["data.sequence=128", "data.max_bytes='4 MiB'", "optimizer.clip=1.0", "checkpoint.at_end=false",
          "train.steps=6", "report.timeline_first=2", "report.timeline_steps=3"]
BASE = {"parallel.pipeline": 2, "parallel.data": 1, "parallel.chunks": 1, "parallel.schedule": "1f1b",
        "train.micro_batch": 4, "parallel.recompute": "none"}
# One thing at a time differs from the base; every plan has at most as many ranks that compute at once as cores, but
# the last of the pipelines, which takes turns.
PLANS = {
    "p1": {"parallel.pipeline": 1},
    "p2": {},
    "p2-interleaved": {"parallel.chunks": 2, "parallel.schedule": "interleaved-1f1b"},
    "p4": {"parallel.pipeline": 4},
    "recompute-full": {"parallel.recompute": "full"},
    "recompute-first": {"parallel.recompute": "0"},
    "recompute-last": {"parallel.recompute": "1"},
    "micro-1": {"train.micro_batch": 1},
    "micro-2": {"train.micro_batch": 2},
    "micro-8": {"train.micro_batch": 8},
    "data-2": {"parallel.pipeline": 1, "parallel.data": 2},
    "data-2-pipeline-2": {"parallel.pipeline": 2, "parallel.data": 2},
}
# (replicas, micro-batch) of the runs that are only profiled.
AT_ONCE = min(4, os.cpu_count())
PROFILES = [(1, 4)] + [(replicas, micro) for replicas in range(2, AT_ONCE + 1) for micro in (1, 2, 4, 8)]


def settings(plan):
    return [f"{key}='{value}'" if isinstance(value, str) else f"{key}={value}"
            for key, value in {**BASE, **plan}.items()]


class Tool:
    def __init__(self, binary, folder):
        self.binary = os.path.abspath(binary)
        self.folder = folder
        self.config = os.path.join(folder, "empty.toml")
        self.environment = {**os.environ, "XDG_CONFIG_HOME": os.path.join(folder, "config")}
        with open(self.config, "w") as file:
            file.write("# everything comes from --set\n")

    def run(self, args):
        done = subprocess.run([self.binary, *args], capture_output=True, text=True, env=self.environment)
        if done.returncode != 0:
            sys.exit(f"{' '.join(args)}\n{done.stderr}")
        return done.stdout

    def calibrate(self):
        self.run(["doctor", "--calibrate"])
        return os.path.join(self.folder, "config", "penstock", "this-machine.toml")

    def train(self, model, plan, name):
        run = os.path.join(self.folder, name)
        shutil.rmtree(run, ignore_errors=True)
        self.run(["train", self.config, "--json", "--set", *MODELS[model], *COMMON, *settings(plan), f"run.dir='{run}'"])
        with open(os.path.join(run, "metrics.jsonl")) as file:
            steps = [json.loads(line) for line in file]
        with open(os.path.join(run, "profile.json")) as file:
            return steps, json.load(file)

    def simulate(self, model, plan, machine, profile=None):
        more = [f"cluster.name='{machine}'"] + ([f"cluster.profile='{profile}'"] if profile else [])
        return json.loads(self.run(["simulate", self.config, "--json", "--set", *MODELS[model], *COMMON, *settings(plan),
                                    *more]))


def median_profile(profiles):
    """Of each subject, size and number of ranks at once the median over rounds."""
    seconds, counts = {}, {}
    for profile in profiles:
        for subject, samples in profile["subjects"].items():
            for size, time, count, at_once in samples:
                seconds.setdefault((subject, at_once, size), []).append(time)
                counts[subject, at_once, size] = counts.get((subject, at_once, size), 0) + count
    subjects = {}
    for subject, at_once, size in sorted(seconds):
        subjects.setdefault(subject, []).append(
            [size, statistics.median(seconds[subject, at_once, size]), counts[subject, at_once, size], at_once])
    return {"penstock_profile": 1, "machine": profiles[0]["machine"], "subjects": subjects}


def measure(tool, rounds, models, plans):
    times = {key: [] for key in itertools.product(models, plans)}
    profiles = {model: [] for model in models}
    peaks = {}
    # Runs to be predicted and runs to be profiled in turns.
    todo = []
    for model in models:
        profiled = [(model, None, pair) for pair in PROFILES]
        planned = [(model, plan, None) for plan in plans]
        stride = max(1, len(planned) // len(profiled))
        while planned or profiled:
            todo += profiled[:1] + planned[:stride]
            profiled, planned = profiled[1:], planned[stride:]
    for i in range(rounds):
        for model, plan, pair in todo:
            if pair:
                _, profile = tool.train(model, {"parallel.pipeline": 1, "parallel.data": pair[0],
                                                "train.micro_batch": pair[1]}, "profiled")
                profiles[model].append(profile)
                continue
            steps, _ = tool.train(model, PLANS[plan], f"{model}-{plan}")
            times[model, plan].append(statistics.median(s["seconds"] for s in steps[2:]))
            peak = [max(s["peak_bytes"][r] for s in steps) for r in range(len(steps[0]["peak_bytes"]))]
            peaks[model, plan] = [max(a, b) for a, b in zip(peak, peaks.get((model, plan), peak))]
            print(f"round {i + 1}: {model} {plan} {times[model, plan][-1] * 1e3:.0f} ms", file=sys.stderr, flush=True)
    return times, peaks, {model: median_profile(profiles[model]) for model in models}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--plans", default=",".join(PLANS))
    parser.add_argument("--record", help="folder for MODEL.toml, MODEL-profile.json and machine.toml")
    args = parser.parse_args()
    models, plans = args.models.split(","), args.plans.split(",")
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(args.binary, folder)
        machine = tool.calibrate()
        times, peaks, profiles = measure(tool, args.rounds, models, plans)
        files = {}
        for model in models:
            files[model] = os.path.join(folder, f"{model}-profile.json")
            with open(files[model], "w") as file:
                file.write(json.dumps(profiles[model], indent=1) + "\n")
        rows = []
        for model, plan in times:
            predicted = tool.simulate(model, PLANS[plan], machine, files[model])
            measured = statistics.median(times[model, plan])
            rows.append({"model": model, "plan": plan, "predicted": predicted["step_seconds"], "measured": measured,
                         "error": predicted["step_seconds"] / measured - 1,
                         "spread": (max(times[model, plan]) - min(times[model, plan])) / measured,
                         "memory": [m / p["peak_bytes"] for m, p in zip(peaks[model, plan], predicted["ranks"])],
                         "peaks": peaks[model, plan],
                         "calibration": tool.simulate(model, PLANS[plan], machine)["step_seconds"] / measured - 1})
        report(rows)
        if args.record:
            record(args.record, rows, files, machine, args.rounds)


def report(rows):
    for r in rows:
        memory = " ".join(f"{m:.3f}" for m in r["memory"])
        print(f"{r['model']:<8} {r['plan']:<18} predicted {r['predicted'] * 1e3:7.1f} ms  measured "
              f"{r['measured'] * 1e3:7.1f} ms  error {r['error'] * 100:+6.1f} %  spread {r['spread'] * 100:5.1f} %  "
              f"without a profile {r['calibration'] * 100:+6.1f} %  memory {memory}")
    errors = [abs(r["error"]) for r in rows]
    pairs = right = 0
    for a, b in itertools.combinations(rows, 2):
        if a["model"] != b["model"] or 1 / 1.1 <= a["predicted"] / b["predicted"] <= 1.1:
            continue
        pairs += 1
        right += (a["predicted"] < b["predicted"]) == (a["measured"] < b["measured"])
    ratios = [m for r in rows for m in r["memory"]]
    print(f"step time: mean absolute error {statistics.mean(errors) * 100:.1f} %, worst {max(errors) * 100:.1f} %, "
          f"median spread {statistics.median(r['spread'] for r in rows) * 100:.1f} %")
    print(f"from the calibration alone: mean absolute error "
          f"{statistics.mean(abs(r['calibration']) for r in rows) * 100:.1f} %")
    print(f"order: {right} of {pairs} pairs whose predictions differ by more than 10 % are ordered rightly")
    print(f"memory: measured / predicted between {min(ratios):.4f} and {max(ratios):.4f}")


def text(value):
    return json.dumps(value)  # a TOML basic string, as long as it is plain


def record(folder, rows, profiles, machine, rounds):
    os.makedirs(folder, exist_ok=True)
    shutil.copy(machine, os.path.join(folder, "machine.toml"))
    for model, profile in profiles.items():
        shutil.copy(profile, os.path.join(folder, f"{model}-profile.json"))
        lines = ["# Written by bench/own_runs.py: runs of this project, and the profile and machine that predict them.", "",
                 "[[group]]", f"name = {text('own-' + model)}", 'kind = "own"',
                 f"summary = {text('thread ranks of one machine, medians of ' + str(rounds) + ' rounds')}",
                 'source = "bench/own_runs.py"',
                 "set = " + text(" ".join(s.replace("'4 MiB'", "4194304") for s in MODELS[model] + COMMON))]
        for row in rows:
            if row["model"] != model:
                continue
            lines += ["", "[[point]]", f"id = {text(model + '-' + row['plan'])}", f"group = {text('own-' + model)}",
                      f"set = {text(' '.join(settings(PLANS[row['plan']])))}",
                      f"profile = {text(model + '-profile.json')}", 'cluster = "machine.toml"',
                      f"seconds = {row['measured']:.6f}", f"spread = {row['spread']:.4f}",
                      f"peak_bytes = {row['peaks']}"]
        with open(os.path.join(folder, f"{model}.toml"), "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
