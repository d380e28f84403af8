#!/usr/bin/env python3
"""What saving costs in memory and time: the largest resident set of a training run without saves, with saves that wait,
and with saves that are written while training goes on; and the seconds per step of each. Interleaved, medians.

usage: saving_memory.py PENSTOCK [--rounds N]

A model of 29 million parameters (state 350 MB with adam), one rank and two replicas of a two-stage pipeline.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

CONFIG = """
[train]
steps = 8
batch = 4
micro_batch = 1
[model]
layers = 8
hidden = 512
heads = 8
context = 128
[data]
source = "python-stdlib"
max_bytes = "1 MiB"
sequence = 128
[checkpoint]
at_end = false
keep = 1
self_check = false
"""

SAVING = {"no saves": ["checkpoint.every=0"],
          "saves wait": ["checkpoint.every=2", "checkpoint.snapshot=0"],
          "snapshot 64 MiB": ["checkpoint.every=2", "checkpoint.snapshot=64 MiB"],
          "snapshot of all": ["checkpoint.every=2", "checkpoint.snapshot=4 GiB"]}
LAYOUTS = {"1 rank": [], "2 x 2 ranks": ["parallel.data=2", "parallel.pipeline=2"]}

# Prints the largest resident set of its only child, in KiB.
RUNNER = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("penstock")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    penstock = str(pathlib.Path(arguments.penstock).resolve())
    with tempfile.TemporaryDirectory(prefix="penstock-saving-") as root:
        root = pathlib.Path(root)
        config = root / "saving.toml"
        config.write_text(CONFIG)
        resident, seconds = {}, {}
        for round_number in range(arguments.rounds):
            for layout, layout_keys in LAYOUTS.items():
                for saving, saving_keys in SAVING.items():
                    run = root / f"run{round_number}"
                    keys = [f"--set=run.dir={run}", "--set=run.overwrite=false"]
                    keys += [f"--set={k}" for k in layout_keys + saving_keys]
                    out = subprocess.run([sys.executable, "-c", RUNNER, penstock, "train", str(config), "--json"] + keys,
                                         check=True, capture_output=True, text=True).stdout
                    resident.setdefault((layout, saving), []).append(int(out) / 1024)
                    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
                    seconds.setdefault((layout, saving), []).append(
                        (steps[-1]["wall"] - steps[0]["wall"]) / (len(steps) - 1) if "wall" in steps[0]
                        else statistics.mean(s["seconds"] for s in steps[1:]))
                    subprocess.run(["rm", "-rf", str(run)], check=True)
        print(f"{'layout':<12} {'saving':<16} {'resident MiB':>13} {'rise MiB':>9} {'s per step':>11}")
        for layout in LAYOUTS:
            base = statistics.median(resident[layout, "no saves"])
            for saving in SAVING:
                now = statistics.median(resident[layout, saving])
                print(f"{layout:<12} {saving:<16} {now:>13.0f} {now - base:>9.0f} "
                      f"{statistics.median(seconds[layout, saving]):>11.3f}")


if __name__ == "__main__":
    main()
