#!/bin/sh
# fetch.sh FOLDER: unpacks the Debian packages that collect.py and held_out.py read into FOLDER/NAME
# (Debian 12; English descriptions need `apt-get update -o Acquire::Languages=en` once).
set -e
mkdir -p "$1" && cd "$1"
for name in dict-foldoc libreoffice-help-en-us anarchism debian-faq developers-reference \
  debian-reference-en aptitude-doc-en python3.11-doc postgresql-doc-15 gimp-help-en git-doc \
  perl-doc gnome-user-docs; do
  apt-get download "$name"
  mkdir -p "$name" && dpkg -x "${name}"_*.deb "$name" && rm "${name}"_*.deb
done
