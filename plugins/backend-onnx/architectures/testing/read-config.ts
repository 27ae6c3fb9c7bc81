import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fixtureFolder } from "../../testing/fixtures.ts"
import type { DecoderConfig } from "../decoder-config.ts"
import { folderConfig } from "../folder-config.ts"

/** Reads a fixture's config.json with these changes; `undefined` leaves a key out. */
export const readConfig = (
  name: string,
  change: Readonly<Record<string, unknown>>,
): DecoderConfig => {
  const own = JSON.parse(readFileSync(join(fixtureFolder(name), "config.json"), "utf8")) as object
  const folder = mkdtempSync(join(tmpdir(), "rakit-config-"))
  try {
    const config = { ...own, max_position_embeddings: 8192, ...change }
    writeFileSync(join(folder, "config.json"), JSON.stringify(config))
    return folderConfig(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
