import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { bundled } from "./bundle.ts"

// A step of the build: writes the bundle beside the compiled plugin, which serves it from there.
const folder = fileURLToPath(new URL("web/", import.meta.url))
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder)
for (const [name, bytes] of bundled()) writeFileSync(join(folder, name), bytes)
