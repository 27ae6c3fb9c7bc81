#!/bin/sh
# Builds grammar.wasm and its sha256 from this folder, with the crates of Cargo.lock. Needs cargo; adds the target where rustup can.
# `rebuild.sh FOLDER` writes into another folder, so that the two can be compared.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here}
target=wasm32-unknown-unknown
if command -v rustup >/dev/null; then rustup target add "$target"; fi
build=$(mktemp -d)
(cd "$here" && cargo fetch --locked --target "$target")
trap 'rm -rf "$build"' EXIT

# a deep schema needs a deep stack; a grammar that grows must fail before the process does; paths of the building machine are nobody's business
flags="-C link-arg=-zstack-size=8388608 -C link-arg=--max-memory=1073741824"
for crates in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do flags="$flags --remap-path-prefix=$crates=/crates"; done
flags="$flags --remap-path-prefix=$here=/rakit-grammar --remap-path-prefix=$build=/build"
(cd "$here" && RUSTFLAGS="$flags" CARGO_TARGET_DIR="$build" cargo build --release --locked --target "$target")
cp "$build/$target/release/rakit_grammar.wasm" "$out/grammar.wasm"
chmod 644 "$out/grammar.wasm"
(cd "$out" && sha256sum grammar.wasm >grammar.wasm.sha256)
