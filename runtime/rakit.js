#!/usr/bin/env node
// Runs the compiled server that `npm install` made; where a source is newer (or nothing was compiled), the sources themselves.
import { existsSync, readdirSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { setFlagsFromString } from "node:v8"

// V8 puts objects of a call straight into its old heap where those of the same line of code lived long before, as all do while a server starts,
// and they stay there until a full collection: 18 kB of a paid call. What was given to node by hand counts.
if (!process.execArgv.some((flag) => /allocation[-_]site[-_]pretenuring/.test(flag)))
  setFlagsFromString("--no-allocation-site-pretenuring")

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const compiled = join(root, "dist", "runtime", "cli.js")

const newest = (folder) =>
  readdirSync(folder, { withFileTypes: true }).reduce((latest, entry) => {
    if (entry.isDirectory()) return Math.max(latest, newest(join(folder, entry.name)))
    return entry.name.endsWith(".ts") && !entry.name.endsWith(".test.ts")
      ? Math.max(latest, statSync(join(folder, entry.name)).mtimeMs)
      : latest
  }, 0)

const isFresh = () => {
  if (!existsSync(compiled)) return false
  const builtMs = statSync(compiled).mtimeMs
  return ["core", "plugins", "runtime", "testing"].every(
    (folder) => !existsSync(join(root, folder)) || newest(join(root, folder)) <= builtMs,
  )
}

const load = async () => {
  if (isFresh()) return import("../dist/runtime/cli.js")
  const { register } = await import("tsx/esm/api")
  register()
  return import("./cli.ts")
}

// while the server itself is still being loaded there is nothing to stop: the first signal already ends in order
if (process.argv[2] === "serve")
  for (const signal of ["SIGTERM", "SIGINT"])
    process.on(signal, () => process.listenerCount(signal) === 1 && process.exit(0))

const { main } = await load()
await main(process.argv)
