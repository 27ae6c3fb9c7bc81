#!/bin/sh
# Writes LICENSES.txt: every crate that is linked into grammar.wasm, its version, its licence, and the texts. Needs cargo and the crates (rebuild.sh fetches them).
set -eu
cd "$(dirname "$0")"
cargo metadata --locked --format-version 1 --filter-platform wasm32-unknown-unknown | node -e '
const { packages, resolve } = JSON.parse(require("fs").readFileSync(0, "utf8"))
const { readdirSync, readFileSync } = require("fs")
const { dirname, join } = require("path")
const nodes = new Map(resolve.nodes.map((node) => [node.id, node]))
const byId = new Map(packages.map((crate) => [crate.id, crate]))
const isMacro = (id) => byId.get(id).targets.some(({ kind }) => kind.includes("proc-macro"))
const linked = new Set()
const visit = (id) => {
  // what only runs while it is built is not in the module
  if (linked.has(id) || isMacro(id)) return
  linked.add(id)
  for (const { pkg, dep_kinds } of nodes.get(id).deps) if (dep_kinds.some(({ kind }) => kind === null)) visit(pkg)
}
visit(resolve.root)
linked.delete(resolve.root)
const texts = new Map()
const crates = [...linked].map((id) => byId.get(id)).sort((a, b) => (a.name < b.name ? -1 : 1))
for (const { name, version, manifest_path } of crates) {
  const folder = dirname(manifest_path)
  for (const file of readdirSync(folder).filter((file) => /^(licen[sc]e|copying|notice)/i.test(file)).sort()) {
    const text = readFileSync(join(folder, file), "utf8").trim()
    texts.set(text, [...(texts.get(text) ?? []), `${name} ${version} (${file})`])
  }
}
console.log("grammar.wasm is linked from these crates of crates.io:\n")
for (const { name, version, license, repository } of crates) console.log(`${name} ${version}: ${license}, ${repository}`)
for (const [text, of] of texts) console.log(`\n\n${"=".repeat(80)}\n${of.join("\n")}\n${"=".repeat(80)}\n\n${text}`)
' >LICENSES.txt
