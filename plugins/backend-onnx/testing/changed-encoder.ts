import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/**
 * Copies a folder into `root` and changes its JSON files: keys are set, a list replaces the file,
 * and undefined removes it. Returns the path of the copy.
 */
export const changedEncoder = (
  root: string,
  from: string,
  changes: Readonly<Record<string, object | undefined>>,
): string => {
  const path = mkdtempSync(join(root, "changed-"))
  cpSync(from, path, { recursive: true })
  for (const [name, change] of Object.entries(changes)) {
    const file = join(path, name)
    if (change === undefined) {
      rmSync(file)
      continue
    }
    const old: object = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {}
    writeFileSync(file, JSON.stringify(Array.isArray(change) ? change : { ...old, ...change }))
  }
  return path
}
