#!/usr/bin/env bash
# Makes a fresh Debian 12/13 or Ubuntu 22.04+ machine ready to build Penstock, or says what it may not do. Idempotent: on a
# machine that has everything it looks, prints one line and ends. Needs git, make, g++ and python3 to start from.
#
#   LIBTORCH=/folder       use this libtorch (holds include/ and lib/); nothing is downloaded for it
#   PENSTOCK_CACHE=folder  where downloads are kept (default ~/.cache/penstock)
#   PENSTOCK_APT=0         never call apt-get; print the command instead
#   --without-torch        the planning half alone
#   --tools                also the tools of `make lint` (clang-format, clang-tidy)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly torch_version=2.13.0
readonly tomlplusplus_tag=v3.3.0
readonly tomlplusplus_source=${TOMLPLUSPLUS_SOURCE:-https://github.com/marzer/tomlplusplus.git}
readonly cache=${PENSTOCK_CACHE:-$HOME/.cache/penstock}
with_torch=1
with_tools=0
for argument in "$@"; do
  case $argument in
    --without-torch) with_torch=0 ;;
    --tools) with_tools=1 ;;
    *) echo "setup: unknown argument $argument (known: --without-torch, --tools)" >&2; exit 2 ;;
  esac
done

say() { echo "setup: $*"; }
die() { echo "setup: $*" >&2; exit 1; }

# --- Debian packages ------------------------------------------------------------------------------------------------

updated=0
apt_install() {
  local sudo=""
  [ "$(id -u)" = 0 ] || sudo=sudo
  local command="apt-get install -y --no-install-recommends $*"
  command -v apt-get >/dev/null || die "these are missing and there is no apt-get here; install their equivalents: $*"
  if [ "${PENSTOCK_APT:-1}" = 0 ]; then die "missing: $*. Run: $command"; fi
  if [ -n "$sudo" ] && ! command -v sudo >/dev/null; then
    die "missing: $*. This account may not install them (no sudo). As root, run: $command"
  fi
  if [ -n "$sudo" ] && [ ! -t 0 ] && ! sudo -n true 2>/dev/null; then
    die "missing: $*. sudo wants a password and there is no terminal to ask on. As root, run: $command"
  fi
  say "installing Debian packages: $*"
  if [ $updated = 0 ]; then
    $sudo apt-get update -q >/dev/null || say "apt-get update failed; going on with the lists that are there"
    updated=1
  fi
  $sudo env DEBIAN_FRONTEND=noninteractive $command >/dev/null || die "failed: $command"
}

installed() { dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

install_packages() {
  local packages=(g++ make git cmake ninja-build ccache libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev
                  libtomlplusplus-dev libxxhash-dev libpcre2-dev libutf8proc-dev libsentencepiece-dev libpng-dev
                  zlib1g-dev libgtest-dev libbenchmark-dev)
  # Ranks as processes (an MPI that is there already is as good).
  if [ $with_torch = 1 ] && ! command -v mpicc >/dev/null; then packages+=(libopenmpi-dev openmpi-bin); fi
  if [ $with_tools = 1 ]; then packages+=(clang-format clang-tidy); fi
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system: expecting cmake, ninja, fmt, spdlog, nlohmann-json, CLI11, toml++, xxhash, pcre2, utf8proc," \
        "sentencepiece, libpng, zlib, GoogleTest and Google Benchmark to be there, and an MPI if ranks are to be processes"
    return
  fi
  local missing=() package
  for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} = 0 ] && return
  if [[ " ${missing[*]} " == *" libtomlplusplus-dev "* ]]; then
    # Ubuntu 22.04 may not offer it; then a pinned release is cloned below.
    if [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; then
      [ "${PENSTOCK_APT:-1}" = 0 ] || { $( [ "$(id -u)" = 0 ] || echo sudo ) apt-get update -q >/dev/null || true; updated=1; }
    fi
    if ! apt-cache show libtomlplusplus-dev >/dev/null 2>&1; then
      missing=("${missing[@]/libtomlplusplus-dev/}")
      local kept=()
      for package in "${missing[@]}"; do if [ -n "$package" ]; then kept+=("$package"); fi; done
      missing=("${kept[@]+"${kept[@]}"}")
    fi
  fi
  if [ ${#missing[@]} != 0 ]; then apt_install "${missing[@]}"; fi
}

install_tomlplusplus() {
  local header=toml++/toml.h
  if [ -e /usr/include/$header ] || [ -e /usr/local/include/$header ] || [ -e "$cache/tomlplusplus/include/$header" ]; then
    return
  fi
  say "fetching toml++ $tomlplusplus_tag (header-only; there is no package here) into $cache/tomlplusplus"
  rm -rf "$cache/tomlplusplus.partial"
  git clone -q --depth 1 --branch "$tomlplusplus_tag" "$tomlplusplus_source" "$cache/tomlplusplus.partial" 2>/dev/null ||
    die "could not clone $tomlplusplus_source; install libtomlplusplus-dev, or set TOMLPLUSPLUS_SOURCE to a mirror"
  mv "$cache/tomlplusplus.partial" "$cache/tomlplusplus"
}

# --- libtorch -------------------------------------------------------------------------------------------------------

# Names of the shared libraries libtorch_cpu.so needs and neither the machine nor the wheels beside it have.
unresolved_libraries() {
  local torch=$1 library
  ldd "$torch/lib/libtorch_cpu.so" 2>/dev/null | sed -n 's/^[[:space:]]*\(.*\) => not found$/\1/p' | sort -u |
    while read -r library; do
      compgen -G "$torch/../nvidia/*/lib/$library" >/dev/null || echo "$library"
    done
}

# Installs the wheels of the missing libraries, and of what those need in turn.
install_vendor_libraries() {
  local venv=$1 torch=$2 missing vendor round
  local options=(--quiet --disable-pip-version-check --no-input)
  for round in 1 2 3; do
    missing=$(unresolved_libraries "$torch" | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    vendor=$("$venv/bin/python3" - "$missing" <<'PY'
import importlib.metadata, re, sys
parts = {"libcudart": "cuda-runtime", "libcupti": "cuda-cupti", "libcufile": "cufile", "libnvToolsExt": "nvtx",
         "libcusparseLt": "cusparselt", "libcusparse": "cusparse", "libcublas": "cublas", "libcudnn": "cudnn",
         "libcufft": "cufft", "libcurand": "curand", "libcusolver": "cusolver", "libnccl": "nccl",
         "libnvJitLink": "nvjitlink", "libnvshmem": "nvshmem", "libnvrtc": "cuda-nvrtc"}
required = [re.sub(r"\s*;.*", "", r).replace(" ", "") for r in importlib.metadata.requires("torch") or []]
major = re.search(r"\+cu(\d\d)", importlib.metadata.version("torch"))
if major is None:
    major = re.search(r"(?:cudart|cupti)\.so\.(\d\d)", sys.argv[1])
for library in sys.argv[1].split():
    part = next((parts[p] for p in sorted(parts, key=len, reverse=True) if library.startswith(p)), None)
    if part is None:
        continue
    listed = [r for r in required if re.match(rf"nvidia-{part}(-cu\d+)?\b(?!-)", r)]
    print(listed[0] if listed else f"nvidia-{part}-cu12" if major and major[1] == "12" else f"nvidia-{part}")
PY
    )
    [ -n "$vendor" ] || break
    say "this is a CUDA build; without a toolkit its CPU half needs ${missing}- installing only:" $vendor
    # shellcheck disable=SC2086
    "$venv/bin/pip" install "${options[@]}" --no-deps $vendor || break
  done
  missing=$(unresolved_libraries "$torch" | tr '\n' ' ')
  [ -z "$missing" ] || die "libtorch_cpu.so still lacks: ${missing}. Install them, or set LIBTORCH to a CPU build of libtorch."
}

# The wheel alone, then its small Python dependencies, then only those vendor libraries that libtorch_cpu.so cannot be
# loaded without. A CUDA wheel asks for gigabytes of cuDNN, cuBLAS and the like; the CPU half never calls them.
install_torch() {
  local venv=$cache/venv-torch-$torch_version
  local pip=$venv.partial/bin/pip
  if ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
    say "python3 has no venv module"
    apt_install "python$(python3 -c 'import sys; print(f"{sys.version_info[0]}.{sys.version_info[1]}")')-venv"
  fi
  say "installing torch $torch_version by pip into $venv (about 200 MB to download for a CPU wheel, up to 1 GB for CUDA)"
  # Built beside its place and moved at the end: an interrupted download never looks like a finished one.
  rm -rf "$venv.partial"
  python3 -m venv "$venv.partial" || die "python3 -m venv failed"
  local options=(--quiet --disable-pip-version-check --no-input)
  "$pip" install "${options[@]}" --no-deps "torch==$torch_version" ||
    die "pip could not install torch==$torch_version. Without a network: set LIBTORCH to an unpacked libtorch >= 2.9."
  local torch
  torch=$(echo "$venv.partial"/lib/python3*/site-packages/torch)
  local wanted
  wanted=$("$venv.partial/bin/python3" - <<'PY'
import importlib.metadata, re
for line in importlib.metadata.requires("torch") or []:
    if "extra ==" not in line and not re.match(r"(nvidia|triton|cuda|pytorch-triton)", line):
        print(re.sub(r"\s*;.*", "", line).replace(" ", ""))
PY
  )
  # shellcheck disable=SC2086
  "$pip" install "${options[@]}" $wanted || say "the Python dependencies did not install; libtorch works without them"
  install_vendor_libraries "$venv.partial" "$torch"
  rm -rf "$venv"
  mv "$venv.partial" "$venv"
}

# --------------------------------------------------------------------------------------------------------------------

started=$(date +%s%N)
mkdir -p "$cache"
install_packages
install_tomlplusplus
found="none (planning half only)"
if [ $with_torch = 1 ]; then
  if ! found=$(bash scripts/find_libtorch.sh); then
    install_torch
    found=$(bash scripts/find_libtorch.sh) || die "installed torch, but cannot find it again; please report this"
  fi
  [ -e "$found/lib/libtorch_cpu.so" ] || die "LIBTORCH=$found holds no lib/libtorch_cpu.so"
fi
milliseconds=$((($(date +%s%N) - started) / 1000000))
say "done in $((milliseconds / 1000)).$(printf %03d $((milliseconds % 1000))) s; libtorch: $found"
