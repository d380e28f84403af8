#!/usr/bin/env python3
"""Runs ctest and counts: what ran, what was skipped and why. All skipped, or nothing there, is a failure.

usage: run_tests.py --build FOLDER --preset NAME [--only TEST ...]
The exit status is the verdict; ctest's own summary is the last thing but one that is printed.
"""
import argparse
import collections
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree


def count(results):
    """(cases, failed, {reason: number}) over the XML files that GoogleTest wrote."""
    cases = failed = 0
    skipped = collections.Counter()
    for path in sorted(results.glob("*.xml")):
        for case in xml.etree.ElementTree.parse(path).iter("testcase"):
            if case.get("status") != "run":
                continue
            cases += 1
            if case.find("failure") is not None:
                failed += 1
            elif case.get("result") == "skipped":
                skipped[reason(case)] += 1
    return cases, failed, skipped


def reason(case):
    """What GTEST_SKIP() << says: the message's lines after the one with the place."""
    entry = case.find("skipped")
    lines = entry.get("message", "").splitlines() if entry is not None else []
    return "; ".join(line for line in lines[1:] if line.strip()) or "no reason given"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--preset", required=True)
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()

    results = pathlib.Path(arguments.build) / "test-results"
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    command = ["ctest", "--preset", arguments.preset, "--no-tests=error"]
    if arguments.only:
        command += ["-R", "^(" + "|".join(arguments.only) + ")$"]
    status = subprocess.run(command).returncode

    cases, failed, skipped = count(results)
    total_skipped = sum(skipped.values())
    for why, number in sorted(skipped.items()):
        print(f"skipped {number}: {why}")
    print(f"{cases} cases ran in {len(list(results.glob('*.xml')))} programs: "
          f"{cases - failed - total_skipped} passed, {failed} failed, {total_skipped} skipped")
    if cases == total_skipped:
        print("no case ran: that is not a pass")
        status = status or 1
    return status


if __name__ == "__main__":
    sys.exit(main())
