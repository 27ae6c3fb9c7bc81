import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

export const home = fileURLToPath(new URL("../..", import.meta.url))
export const sourceFolders = ["core", "plugins", "runtime", "testing", "config", "examples"]
export const supportFolders = ["bench", "deploy", "docs"]
export const builtFolders = ["coverage", "dist", "node_modules"]

export interface Source {
  readonly path: string
  readonly text: string
}
/** Returns what is wrong with one file, each as a sentence that names the rule. */
export type Rule = (source: Source) => readonly string[]

export const isCode = (path: string): boolean => /\.(ts|mts|js|mjs)$/.test(path)

export const filesIn = (folder: string): readonly string[] =>
  readdirSync(join(home, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.name.startsWith(".") || builtFolders.includes(entry.name)) return []
    return entry.isDirectory() ? [...filesIn(path)] : [path]
  })

/** Benchmarks measure the parts that tests test. */
export const isTest = (path: string): boolean =>
  path.startsWith("bench/") ||
  path.startsWith("testing/") ||
  path.endsWith(".test.ts") ||
  path.includes("/testing/")

export const withoutComments = (text: string): string =>
  text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "$1")

/** Every module that a file names in an import, an export or a worker's address. */
export const importsOf = ({ text }: Source): readonly string[] => {
  const code = withoutComments(text)
  const forms = [
    /^(?:import|export)\b[^"';]*?\bfrom\s*"([^"]+)"/gm,
    /^import\s*"([^"]+)"/gm,
    /\bimport\(\s*"([^"]+)"/g,
    /new URL\(\s*"(\.[^"]+)"\s*,\s*import\.meta/g,
  ]
  return forms.flatMap((form) => [...code.matchAll(form)].map(([, name]) => name!))
}

/** The same, of files in this repository, as paths from its root. */
export const ownImportsOf = (source: Source): readonly string[] =>
  importsOf(source)
    .filter((name) => name.startsWith("."))
    .map((name) => join(dirname(source.path), name))

/** All code of the repository. */
export const sources: readonly Source[] = [...sourceFolders, ...supportFolders]
  .filter((folder) => existsSync(join(home, folder)))
  .flatMap(filesIn)
  .filter(isCode)
  .map((path) => ({ path, text: readFileSync(join(home, path), "utf8") }))

/** The folders of plugins/, sorted. */
export const plugins: readonly string[] = readdirSync(join(home, "plugins"), {
  withFileTypes: true,
})
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort()
