import { existsSync, mkdirSync, statSync } from "node:fs"
import { dirname } from "node:path"

/**
 * Makes a folder and those above it, one by one: below /proc, where nothing can be made, Node 20's
 * recursive `mkdir` never returns.
 */
export const makeFolders = (folder: string, mode = 0o777): void => {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return
  const above = dirname(folder)
  if (!existsSync(above)) makeFolders(above, mode)
  try {
    mkdirSync(folder, { mode })
  } catch (cause) {
    // another process was first
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw cause
  }
}
