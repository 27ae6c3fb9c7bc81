#!/usr/bin/env bash
# Fetches nsfwjs 4.4.0 from npm into the folder $1, converts its default model, and computes the reference values.
# Needs Node, and Python with numpy and onnx (tried with 1.23). About a minute.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
npm install --no-audit --no-fund --prefix . nsfwjs@4.4.0 @tensorflow/tfjs@4.22.0 sharp@0.35.5
node "$here/unpack.mjs" . >model.json
python3 "$here/convert.py" model.json weights.bin "$here/../weights/nsfwjs-mobilenet-v2.onnx"
node "$here/reference.mjs" . "$here/../fixtures/pictures" >"$here/../fixtures/reference.json"
