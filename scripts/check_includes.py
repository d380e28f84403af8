#!/usr/bin/env python3
"""Holds every #include under src/ against the include table src/modules.txt. usage: check_includes.py [ROOT]

Refused: a module the table does not list (directly: what is reached through another module is not allowed by that), a private
folder of another module, a header that does not exist, libtorch above its line (or in a command outside run/),
torch/torch.h anywhere, a cycle in the table or between headers.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
SECTIONS = ("planning", "libtorch", "commands")


def read_table(path):
    """-> ({module: (section, [modules it may include])}, [errors])"""
    table, errors, section = {}, [], None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        where = f"{path.name}:{number}"
        if match := re.fullmatch(r"--- ([a-z]+) ---", line):
            section = match[1]
            if section not in SECTIONS:
                errors.append(f"{where}: unknown section '{section}'")
            continue
        match = re.fullmatch(r"([a-z]+)\s*:\s*([a-z ]*|\*)", line)
        if not match or section is None:
            errors.append(f"{where}: cannot read '{line}'")
            continue
        name, allowed = match[1], list(table) if match[2] == "*" else match[2].split()
        if name in table:
            errors.append(f"{where}: '{name}' is there twice")
        for other in allowed:
            # Only what stands above: that makes a cycle impossible.
            if other not in table:
                errors.append(f"{where}: '{name}' may include '{other}', which is not above it (a cycle, or a misspelling)")
            elif section == "planning" and table[other][0] != "planning":
                errors.append(f"{where}: planning module '{name}' depends on libtorch module '{other}'")
        table[name] = (section, allowed)
    return table, errors


def includes(path):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1] == '"', match[2]


def cycles(graph):
    """Each cycle found by depth-first search, as a list of files."""
    found, state = [], {}

    def visit(node, stack):
        state[node] = "open"
        for other in sorted(graph.get(node, ())):
            if state.get(other) == "open":
                found.append(stack[stack.index(other):] + [other])
            elif other not in state:
                visit(other, stack + [other])
        state[node] = "done"

    for node in sorted(graph):
        if node not in state:
            visit(node, [node])
    return found


def check(root):
    """-> (number of includes read, [errors])"""
    src = root / "src"
    table, errors = read_table(src / "modules.txt")
    count, graph = 0, {}
    for path in sorted(p for p in src.rglob("*") if p.suffix in (".h", ".cc")):
        name = path.relative_to(src).as_posix()
        module = name.split("/")[0]
        if module not in table:
            errors.append(f"src/{name}: module '{module}' is not in src/modules.txt")
            continue
        section, allowed = table[module]
        runs = section == "libtorch" or (section == "commands" and name.startswith(f"{module}/run/"))
        for number, quoted, header in includes(path):
            count += 1
            where = f"src/{name}:{number}"
            if header == "torch/torch.h":
                errors.append(f"{where}: torch/torch.h costs 18 s a file; include what is needed (docs/decisions.md)")
            elif TORCH.match(header):
                if not runs:
                    errors.append(f"{where}: <{header}> in '{module}', which builds without libtorch")
            elif quoted:
                errors += check_own(src, where, module, table, runs, header)
                graph.setdefault(name, set()).add(header)
    for folder in ("tests", "bench", "examples"):
        for path in sorted(p for p in (root / folder).rglob("*") if p.suffix in (".h", ".cc")):
            for number, _, header in includes(path):
                count += 1
                if header == "torch/torch.h":
                    errors.append(f"{path.relative_to(root)}:{number}: torch/torch.h costs 18 s a file")
    errors += ["headers include each other: " + " -> ".join(cycle) for cycle in cycles(graph)]
    return count, errors


def check_own(src, where, module, table, runs, header):
    other, _, rest = header.partition("/")
    if not (src / header).exists():
        return [f'{where}: "{header}" does not exist under src/ (use <> for headers of others)']
    if other == module:
        return []
    if other not in table[module][1]:
        return [f"{where}: '{module}' may not include '{other}' (src/modules.txt allows: "
                f"{' '.join(table[module][1]) or 'nothing'})"]
    # The run/ folders of the commands are the libtorch half of these modules, not their private part.
    between_runs = runs and table[module][0] == table[other][0] == "commands" and re.fullmatch(r"run/[^/]+", rest)
    if "/" in rest and not between_runs:
        return [f'{where}: "{header}" is private to \'{other}\'; include what is in src/{other}/ itself']
    if table[other][0] == "libtorch" and not runs:
        return [f"{where}: \"{header}\" needs libtorch, and '{module}' builds without it outside {module}/run/"]
    return []


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    count, errors = check(root)
    for error in errors:
        print(error)
    print(f"include table: {count} includes, {len(errors)} errors")
    return 1 if errors or not count else 0


if __name__ == "__main__":
    sys.exit(main())
