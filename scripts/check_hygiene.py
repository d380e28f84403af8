#!/usr/bin/env python3
"""Small things that must not be in the tree. usage: check_hygiene.py [ROOT]

No path of somebody's machine, no marks of unfinished work in the sources, no test that is switched off without a reason in the
same line, no header without a guard, no file without its last newline, no marks of a merge that was left half done.
"""
import pathlib
import re
import subprocess
import sys

TEXT = {".cc", ".h", ".py", ".sh", ".txt", ".md", ".toml", ".cmake", ".json", ".supp", ".yml", ""}
# In pieces, so that this file passes its own check.
MACHINE_PATH = re.compile(r"(?<![\w.$}~-])/(?:" + "|".join(["work/", "root/", "home/" + r"[a-z]\w*/", "Users" + "/"]) + ")")
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
MERGE_MARK = re.compile(r"^(<{7}|>{7})( |$)|^={7}$")
SWITCHED_OFF = re.compile(r"\bDIS" + r"ABLED_\w")


def tracked(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [root / line for line in listed.stdout.splitlines()]
    return [p for p in root.rglob("*") if p.is_file() and not any(x.startswith((".git", "build")) for x in p.parts)]


def check(root):
    """-> (number of files read, [errors])"""
    count, errors = 0, []
    for path in sorted(tracked(root)):
        if path.suffix not in TEXT or not path.is_file():
            continue
        name = path.relative_to(root).as_posix()
        if name.startswith("tests/scripts/"):
            continue  # holds what must be found
        text = path.read_text(errors="replace")
        count += 1
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{name}:{number}"
            if MACHINE_PATH.search(line):
                errors.append(f"{where}: a path of one machine: {line.strip()[:80]}")
            if name.startswith("src/") and UNFINISHED.search(line):
                errors.append(f"{where}: unfinished work: {line.strip()[:80]}")
            if MERGE_MARK.search(line):
                errors.append(f"{where}: a merge that was left half done")
            if SWITCHED_OFF.search(line) and "reason:" not in line:
                errors.append(f"{where}: a test is switched off without 'reason:' in the line")
        if path.suffix == ".h" and name.startswith("src/") and "#pragma once" not in text:
            errors.append(f"{name}: header without #pragma once")
        if text and not text.endswith("\n"):
            errors.append(f"{name}: no newline at the end")
    return count, errors


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    count, errors = check(root)
    for error in errors:
        print(error)
    print(f"hygiene: {count} files, {len(errors)} errors")
    return 1 if errors or not count else 0


if __name__ == "__main__":
    sys.exit(main())
