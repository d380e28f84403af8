#!/usr/bin/env python3
"""The contract of the communicator between processes that mpirun starts, and what is left when one of them dies.

usage: mpi.py MPI_CONTRACT [--results FILE]

2, 3 and 4 processes run every operation and every kind of failure (mpi_contract.cc). Then one of four is killed, or
stopped, in the middle of an all-reduce: within 10 s all others must have said which rank it was and what it was doing,
and mpirun must have ended with an error. And a program under the launcher of another MPI must refuse. Exit status 77 (skipped) where there is no MPI. --results: one
case in the form of GoogleTest, so that the runner counts it.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from xml.etree import ElementTree

# Root is refused by Open MPI without the first two.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
LIMIT = 10.0  # seconds from the signal to the last word
VICTIM = 2


def write_results(path, faults, skipped=""):
    if not path:
        return
    case = ElementTree.Element("testcase", name="Contract", classname="Mpi", status="run",
                               result="skipped" if skipped else "completed")
    if skipped:
        ElementTree.SubElement(case, "skipped", message="mpi.py\n" + skipped)
    if faults:
        ElementTree.SubElement(case, "failure", message="; ".join(faults))
    suites = ElementTree.Element("testsuites")
    ElementTree.SubElement(suites, "testsuite", name="Mpi").append(case)
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suites).write(path)


def environment():
    inherited = {k: v for k, v in os.environ.items() if not re.match(r"(OMPI|PMI|PMIX|SLURM)_", k)}
    return {**inherited, **ENVIRONMENT}


class Launcher:
    """mpirun of the MPI that the program is linked with."""

    def __init__(self, path):
        self.path = path
        version = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        self.is_open_mpi = "Open MPI" in version or "open-mpi" in version

    def command(self, processes, program):
        options = ["--oversubscribe", "--bind-to", "none"] if self.is_open_mpi else []
        return [self.path, *options, "-n", str(processes), *program]


def run(command, limit):
    """-> (exit status, lines, [seconds at which each came]). The whole family is killed at the limit."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(),
                             start_new_session=True)
    timer = threading.Timer(limit, lambda: os.killpg(child.pid, signal.SIGKILL))
    timer.start()
    lines, times = [], []
    for line in child.stdout:
        lines.append(line.rstrip())
        times.append(time.monotonic())
    status = child.wait()
    timer.cancel()
    return status, lines, times


def contract(launcher, program):
    faults = []
    for processes in (2, 3, 4):
        start = time.monotonic()
        status, lines, _ = run(launcher.command(processes, [program, "contract"]), 200)
        summary = [line for line in lines if "comparisons on" in line]
        print(f"{processes} processes: {summary[0] if summary else 'no summary'}, {time.monotonic() - start:.1f} s")
        if status != 0 or not summary or ", 0 wrong" not in summary[0]:
            wrong = [line for line in lines if ": wrong: " in line] or lines[-8:]
            faults.append(f"{processes} processes: exit status {status}: " + " | ".join(wrong))
    return faults


def loss(launcher, program, how):
    status, lines, times = run(launcher.command(4, [program, how, str(VICTIM)]), 90)
    begin = next((t for line, t in zip(lines, times) if line == f"signal: rank {VICTIM}"), None)
    if begin is None:
        return [f"{how}: no signal was sent: " + " | ".join(lines[-8:])]
    words = f"rank {VICTIM}: lost while at 'all-reduce of step 3 on {VICTIM}'"
    said = [t - begin for line, t in zip(lines, times) if line.startswith("lost: ") and words in line]
    print(f"{how}: {len(said)} of 3 named it, the last after {max(said, default=0):.1f} s; exit status {status}")
    faults = []
    if len(said) != 3 or max(said) > LIMIT:
        faults.append(f"{how}: {len(said)} of 3 named the rank and its action within {LIMIT} s: " + " | ".join(lines))
    if status == 0:
        faults.append(f"{how}: the launcher reported success")
    return faults


def foreign_launcher(program):
    """The variables of a launcher that started two processes, around a world of one."""
    other = {"PMI_RANK": "0", "PMI_SIZE": "2"}
    done = subprocess.run([program, "alone"], capture_output=True, text=True, env={**environment(), **other}, timeout=60)
    print(f"under another launcher: exit status {done.returncode}")
    if done.returncode != 2 or "started 2 processes" not in done.stderr:
        return [f"under another launcher: exit status {done.returncode}: {done.stdout} {done.stderr}"]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mpi_contract")
    parser.add_argument("--results")
    options = parser.parse_args()
    program = str(pathlib.Path(options.mpi_contract).resolve())
    alone = subprocess.run([program, "alone"], capture_output=True, text=True, env=environment(), timeout=60)
    if "has no MPI" in alone.stderr:
        write_results(options.results, [], skipped="this build has no MPI")
        print("skipped: this build has no MPI")
        return 77
    path = shutil.which("mpirun")
    if path is None:
        write_results(options.results, [], skipped="there is no mpirun")
        print("skipped: there is no mpirun")
        return 77
    faults = [] if alone.stdout == "a world of 1\n" else [f"without launcher: {alone.stdout} {alone.stderr}"]
    launcher = Launcher(path)
    faults += contract(launcher, program)
    if launcher.is_open_mpi:  # MPICH kills the others before they can say anything
        faults += loss(launcher, program, "kill")
        faults += loss(launcher, program, "stop")
        faults += foreign_launcher(program)
    for fault in faults:
        print("FAULT " + fault)
    write_results(options.results, faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
