#!/usr/bin/env python3
"""How true predictions of our own runs are: two models, twelve plans each, on thread ranks of this machine.

    python3 bench/own_runs.py build/penstock --record exam/own [--rounds 5]

First a profile: as many replicas as cores, each micro-batch size (cluster.profile of all predictions); one rank alone
gives times that are 10 to 20 % too short for two. Then all plans, interleaved,
`--rounds` times; the step time of a plan is the median over rounds of the median over steps. Predictions are made by
`penstock simulate` from the same configuration. Nothing else should run on the machine.

Prints per plan: predicted, measured, error, spread, memory; then the figures of docs/exam.md. With --record the runs are
kept for `penstock exam`.
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
MICRO_BATCHES = [1, 2, 4, 8]


def assignments(model, plan):
    merged = {**BASE, **plan}
    return MODELS[model] + COMMON + [f"{key}='{value}'" if isinstance(value, str) else f"{key}={value}"
                                     for key, value in merged.items()]


class Tool:
    def __init__(self, binary, folder):
        self.binary = os.path.abspath(binary)
        self.folder = folder
        self.config = os.path.join(folder, "empty.toml")
        with open(self.config, "w") as file:
            file.write("# everything comes from --set\n")

    def call(self, command, sets, extra=()):
        args = [self.binary, command, self.config, *extra, "--set", *sets]
        done = subprocess.run(args, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(args)}\n{done.stderr}")
        return done.stdout

    def train(self, sets, name):
        run = os.path.join(self.folder, name)
        shutil.rmtree(run, ignore_errors=True)
        self.call("train", sets + [f"run.dir='{run}'"], ["--json"])
        with open(os.path.join(run, "metrics.jsonl")) as file:
            steps = [json.loads(line) for line in file]
        return run, steps

    def simulate(self, sets, profile):
        return json.loads(self.call("simulate", sets + [f"cluster.profile='{profile}'"], ["--json"]))


def measure(tool, rounds, models, plans, profiles):
    times = {key: [] for key in itertools.product(models, plans)}
    peaks = {}
    for i in range(rounds):
        for model, plan in times:
            _, steps = tool.train(assignments(model, PLANS[plan]), f"{model}-{plan}")
            times[model, plan].append(statistics.median(s["seconds"] for s in steps[2:]))
            peak = [max(s["peak_bytes"][r] for s in steps) for r in range(len(steps[0]["peak_bytes"]))]
            peaks[model, plan] = [max(a, b) for a, b in zip(peak, peaks.get((model, plan), peak))]
            print(f"round {i + 1}: {model} {plan} {times[model, plan][-1] * 1e3:.0f} ms", file=sys.stderr)
    return times, peaks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--plans", default=",".join(PLANS))
    parser.add_argument("--profiles", help="folder with MODEL.json instead of measuring them")
    parser.add_argument("--profile-ranks", type=int, default=2,
                        help="replicas of a profile: as many as cores, so that layers are timed as they will run")
    parser.add_argument("--record", help="folder for MODEL.toml and MODEL-profile.json")
    args = parser.parse_args()
    models, plans = args.models.split(","), args.plans.split(",")
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(args.binary, folder)
        profiles = {}
        for model in models:
            if args.profiles:
                profiles[model] = os.path.join(args.profiles, f"{model}.json")
                continue
            kept = []
            for micro in MICRO_BATCHES:
                run, _ = tool.train(assignments(model, {"parallel.pipeline": 1, "parallel.data": args.profile_ranks,
                                                        "train.micro_batch": micro}),
                                    f"profile-{model}-{micro}")
                kept.append(os.path.join(run, "profile.json"))
            profiles[model] = ",".join(kept)
        times, peaks = measure(tool, args.rounds, models, plans, profiles)
        rows = []
        for model, plan in times:
            predicted = tool.simulate(assignments(model, PLANS[plan]), profiles[model])
            measured = statistics.median(times[model, plan])
            spread = (max(times[model, plan]) - min(times[model, plan])) / measured
            memory = [m / p["peak_bytes"] for m, p in zip(peaks[model, plan], predicted["ranks"])]
            rows.append({"model": model, "plan": plan, "predicted": predicted["step_seconds"], "measured": measured,
                         "all": times[model, plan], "error": predicted["step_seconds"] / measured - 1,
                         "spread": spread, "memory": memory, "peaks": peaks[model, plan]})
        report(rows)
        if args.record:
            record(args.record, rows, profiles)


def report(rows):
    for r in rows:
        memory = " ".join(f"{m:.3f}" for m in r["memory"])
        print(f"{r['model']:<8} {r['plan']:<18} predicted {r['predicted'] * 1e3:7.1f} ms  measured "
              f"{r['measured'] * 1e3:7.1f} ms  error {r['error'] * 100:+6.1f} %  spread {r['spread'] * 100:5.1f} %  "
              f"memory {memory}")
    errors = [abs(r["error"]) for r in rows]
    pairs = right = 0
    for a, b in itertools.combinations(rows, 2):
        if a["model"] != b["model"] or abs(a["predicted"] / b["predicted"] - 1) <= 0.1:
            continue
        pairs += 1
        right += (a["predicted"] < b["predicted"]) == (a["measured"] < b["measured"])
    ratios = [m for r in rows for m in r["memory"]]
    print(f"step time: mean absolute error {statistics.mean(errors) * 100:.1f} %, worst {max(errors) * 100:.1f} %, "
          f"median spread {statistics.median(r['spread'] for r in rows) * 100:.1f} %")
    print(f"order: {right} of {pairs} pairs whose predictions differ by more than 10 % are ordered rightly")
    print(f"memory: measured / predicted between {min(ratios):.3f} and {max(ratios):.3f}")


def record(folder, rows, profiles):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "runs.json"), "w") as file:
        json.dump([{**r, "assignments": assignments(r["model"], PLANS[r["plan"]])} for r in rows], file, indent=1)
    for model, files in profiles.items():
        merged = None
        for name in files.split(","):
            with open(name) as file:
                one = json.load(file)
            if merged is None:
                merged = one
                continue
            for subject, samples in one["subjects"].items():
                known = {s[0]: s for s in merged["subjects"].get(subject, [])}
                known.update({s[0]: s for s in samples})
                merged["subjects"][subject] = [known[size] for size in sorted(known)]
        with open(os.path.join(folder, f"{model}-profile.json"), "w") as file:
            json.dump(merged, file, indent=1)


if __name__ == "__main__":
    main()
