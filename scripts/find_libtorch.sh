#!/usr/bin/env bash
# Prints the folder of libtorch (holds include/ and lib/), or fails: LIBTORCH, else an importable torch >= 2.9, else the
# virtual environment that scripts/setup.sh keeps under PENSTOCK_CACHE. Installs nothing.
set -eu

readonly torch_version=2.13.0
readonly cache=${PENSTOCK_CACHE:-$HOME/.cache/penstock}

if [ -n "${LIBTORCH:-}" ]; then
  echo "$LIBTORCH"
  exit 0
fi

# Without importing it: the import takes seconds, and fails for a CUDA build whose vendor libraries are missing.
locate() {
  "$1" - <<'PY' 2>/dev/null
import importlib.util, pathlib, re, sys
spec = importlib.util.find_spec("torch")
if spec is None or not spec.origin:
    sys.exit(1)
root = pathlib.Path(spec.origin).parent
version = re.search(r"__version__ = '(\d+)\.(\d+)", (root / "version.py").read_text())
usable = version and (int(version[1]), int(version[2])) >= (2, 9) and (root / "lib/libtorch_cpu.so").exists()
if not usable:
    sys.exit(1)
print(root)
PY
}

for python in python3 "$cache/venv-torch-$torch_version/bin/python3"; do
  if command -v "$python" >/dev/null && folder=$(locate "$python"); then
    echo "$folder"
    exit 0
  fi
done
exit 1
