#!/usr/bin/env bash
# Format, include table, hygiene. --fix formats in place. Only the formatter needs a tool that may be missing; without it
# the other checks still run, and the end says so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
mapfile -t files < <(git ls-files --cached --others --exclude-standard 'src/*.cc' 'src/*.h' 'tests/*.cc' 'tests/*.h' 'bench/*.cc' 'bench/*.h')
if ! command -v clang-format >/dev/null; then
  echo "lint: clang-format is not installed (scripts/setup.sh --tools); the format was not checked" >&2
  status=1
elif [ "${1:-}" = --fix ]; then
  clang-format -i "${files[@]}"
else
  clang-format --dry-run -Werror "${files[@]}" || status=1
fi
python3 scripts/check_includes.py || status=1
python3 scripts/check_hygiene.py || status=1
[ $status = 0 ] && echo "lint: ${#files[@]} files, nothing to say"
exit $status
