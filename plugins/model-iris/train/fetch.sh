#!/bin/sh
# fetch.sh FOLDER: gets the packages whose pictures and names the recipe reads, at these versions.
# Then: node render.mjs FOLDER/node_modules FOLDER/data
set -e
mkdir -p "$1/data"
npm install --prefix "$1" --ignore-scripts --no-audit --no-fund \
  @iconify-json/fluent-emoji@1.2.7 @iconify-json/fluent-emoji-flat@1.2.6 @iconify-json/noto@1.2.9 \
  @iconify-json/flat-color-icons@1.2.3 @twemoji/svg@15.0.0 lucide-static@1.62.0 \
  cldr-annotations-full@48.2.0 cldr-annotations-derived-full@48.2.0 unicode-emoji-json@0.9.0
npm install --prefix "$1" --no-audit --no-fund sharp@0.35.5
