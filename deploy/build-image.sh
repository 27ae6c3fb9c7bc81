#!/usr/bin/env bash
# Runs the Dockerfile's own instructions in chroots, where no container builder is there:
#   deploy/build-image.sh FOLDER    makes FOLDER/root (the image's files) and FOLDER/image.json, and prints its size
# As root on Linux, with debootstrap and npm. Base images are debootstrap's Debian, and for node:* node and npm of the
# npm registry; they are kept in ~/.cache/rakit. It knows the instructions that our Dockerfile has; others end it.
set -euo pipefail
deploy=$(cd "$(dirname "$0")" && pwd)
target=$(mkdir -p "$1" && cd "$1" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rakit
mkdir -p "$cache"

debian_base() { # release
  local folder=$cache/image-debian-$1 mirror
  if [ ! -d "$folder" ]; then
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources 2>/dev/null | grep -oE 'https?://\S+/debian/?(\s|$)' | head -1)
    rm -rf "$folder.part"
    debootstrap --variant=minbase "$1" "$folder.part" $mirror >&2
    # as the slim images do
    (cd "$folder.part" && rm -rf usr/share/{doc,man,info,locale}/* var/cache/apt/* var/lib/apt/lists/* var/log/*)
    mv "$folder.part" "$folder"
  fi
  echo "$folder"
}
node_base() { # version, release
  local folder=$cache/image-node-$1-$2 below made binary
  if [ ! -d "$folder" ]; then
    below=$(debian_base "$2")
    rm -rf "$folder.part" "$folder.npm"
    cp -a "$below" "$folder.part"
    made=$folder.npm
    npm install --prefix "$made" --no-audit --no-fund --ignore-scripts "node-linux-$(node -p process.arch)@$1" npm@10 >&2
    binary=$(find "$made/node_modules" -path '*/bin/node' -type f -size +10M | head -1)
    mkdir -p "$folder.part/usr/local/lib/node_modules"
    cp "$binary" "$folder.part/usr/local/bin/node"
    cp -a "$made/node_modules/npm" "$folder.part/usr/local/lib/node_modules/npm"
    for name in npm npx; do ln -s "../lib/node_modules/npm/bin/$name-cli.js" "$folder.part/usr/local/bin/$name"; done
    rm -rf "$made"
    mv "$folder.part" "$folder"
  fi
  echo "$folder"
}
base_of() { # node:22-bookworm-slim
  case $1 in
    node:*-*-slim) node_base "$(cut -d: -f2 <<<"$1" | cut -d- -f1)" "$(cut -d- -f2 <<<"$1")" ;;
    debian:*-slim) debian_base "$(cut -d: -f2 <<<"$1" | cut -d- -f1)" ;;
    *) echo "build-image: no base for $1" >&2; return 1 ;;
  esac
}

# what a builder would send: the context without what .dockerignore names
context=$target/context
mkdir -p "$context"
excludes=()
while read -r pattern; do
  case $pattern in
    '') ;;
    '**/'*) excludes+=(--no-anchored "--exclude=${pattern#\*\*/}") ;;
    *) excludes+=(--anchored "--exclude=./$pattern") ;;
  esac
done <"$deploy/Dockerfile.dockerignore"
tar -C "$deploy/.." -c "${excludes[@]}" . | tar -C "$context" -x

# as in a container; what npm needs of this machine is mounted and stays out of the image
inside() {
  local root=$1 folder=$2 command=$3
  shift 3
  unshare --mount bash -ec '
    root=$1 folder=$2 command=$3 home=$4; shift 4
    mount -t proc proc "$root/proc"; mount --rbind /dev "$root/dev"; mount -t tmpfs tmpfs "$root/root"; mount -t tmpfs tmpfs "$root/run"
    lend() { # path, place in the root
      if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$(dirname "$root$2")"; [ -e "$root$2" ] || : >"$root$2"; fi
      mount --bind "$1" "$root$2"
    }
    for path in /etc/resolv.conf /etc/hosts /etc/npmrc /etc/ssl /usr/share/ca-certificates /usr/local/share/ca-certificates; do
      if [ -e "$path" ]; then lend "$path" "$path"; fi
    done
    for name in .npmrc .npm; do if [ -e "$home/$name" ]; then lend "$home/$name" "/root/$name"; fi; done
    exec chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root ${NODE_EXTRA_CA_CERTS:+NODE_EXTRA_CA_CERTS=$NODE_EXTRA_CA_CERTS} "$@" sh -ec "cd $folder && $command"
  ' inside "$root" "$folder" "$command" "$HOME" "$@" >&2
}

declare -A args=()
stage='' root='' workdir=/ environment=() user='' entrypoint='' command='' health=''
place() { case $1 in /*) echo "$root$1" ;; *) echo "$root$workdir/$1" ;; esac; }
copy() {
  local from=$context paths to path
  case $1 in --from=*) from=$target/stage-${1#--from=}; shift ;; esac
  paths=("${@:1:$#-1}") to=$(place "${@: -1}")
  for path in "${paths[@]}"; do
    # the content of a folder, a file by its name
    if [ -d "$from/$path" ]; then mkdir -p "$to"; cp -a "$from/$path/." "$to"
    else case ${@: -1} in */) mkdir -p "$to"; cp -a "$from/$path" "$to" ;; *) mkdir -p "$(dirname "$to")"; cp -a "$from/$path" "$to" ;; esac; fi
  done
}
while read -r word rest; do
  for name in "${!args[@]}"; do if [ "$word" = FROM ]; then rest=${rest//\$\{$name\}/${args[$name]}}; fi; done
  case $word in
    ARG) args[${rest%%=*}]=${rest#*=} ;;
    FROM)
      read -r image _ stage <<<"$rest"
      root=$target/stage-${stage:=final} workdir=/ environment=() user=''
      base=$(base_of "$image")
      cp -a "$base" "$root" ;;
    WORKDIR) workdir=$rest; mkdir -p "$root$rest" ;;
    ENV) read -ra more <<<"$rest"; environment+=("${more[@]}") ;;
    COPY) read -ra words <<<"$rest"; copy "${words[@]}" ;;
    RUN) echo "== $stage: $rest" >&2; inside "$root" "$workdir" "$rest" "${environment[@]}" ;;
    USER) user=$rest ;;
    HEALTHCHECK) health=${rest#*CMD } ;;
    ENTRYPOINT) entrypoint=$rest ;;
    CMD) command=$rest ;;
    VOLUME | EXPOSE) ;;
    *) echo "build-image: the instruction $word is not known" >&2; exit 1 ;;
  esac
done < <(sed -E '/^\s*(#|$)/d' "$deploy/Dockerfile" | sed -E ':a; /\\$/ { N; s/\\\n/ /; ba }')

rm -rf "$target/root" "$target/context"
mv "$target/stage-final" "$target/root"
rm -rf "$target"/stage-*
size=$(du -s --apparent-size --block-size=1000000 "$target/root" | cut -f1)
ENVIRONMENT=$(printf '%s\n' "${environment[@]}") ROOT=$target/root MB=$size FOLDER=$workdir OWNER=$user \
  node -p 'const e = process.env; JSON.stringify({ root: e.ROOT, megabytes: Number(e.MB), workdir: e.FOLDER, user: e.OWNER, env: Object.fromEntries(e.ENVIRONMENT.split("\n").map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)])), entrypoint: JSON.parse(process.argv[1]), command: JSON.parse(process.argv[2]), health: JSON.parse(process.argv[3]) })' \
  "$entrypoint" "$command" "$health" | tee "$target/image.json"
