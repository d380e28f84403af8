#!/usr/bin/env bash
# `make run`: trains the demo model in a new run directory and prints when the first step was over.
# usage: scripts/run_demo.sh START (seconds since the epoch when `make run` began)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly began=${1:-$(date +%s)}
run_dir=${RUN_DIR:-runs/gpt-demo-$(date +%Y%m%d-%H%M%S)}
trained=$(date +%s)
build/penstock train configs/recipes/gpt-demo.toml --set "run.dir=\"$run_dir\"" ${ARGS:-} &
training=$!
trap 'kill -INT $training 2>/dev/null' INT TERM

while [ ! -s "$run_dir/metrics.jsonl" ] && kill -0 $training 2>/dev/null; do sleep 0.2; done
first=$(date +%s)
status=0
wait $training || status=$?
ended=$(date +%s)
if [ $status = 0 ]; then
  echo "make run: set-up and build $((trained - began)) s, first step after $((first - trained)) s," \
       "whole training $((ended - trained)) s; everything is in $run_dir"
fi
exit $status
