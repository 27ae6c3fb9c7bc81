import { basename, dirname, join } from "node:path"
import { isTest, ownImportsOf, type Rule, type Source, withoutComments } from "./sources.ts"

const minLines = 30

/** Files whose name is a role, that are found by their name, or that a thread starts. */
const mayBeSmall =
  /(^|\/)(plugin|index|settings|migrations?|version)\.ts$|-job\.ts$|\.mjs$|^core\/(ports|services)\//

const linesOf = ({ text }: Source): number => text.trimEnd().split("\n").length

/**
 * A file under 30 lines with one importer is a part of that importer. One that a test imports
 * stands for itself.
 */
export const joinsItsOneImporter = (sources: readonly Source[]): Rule => {
  const importers = new Map<string, Set<string>>()
  for (const source of sources.filter(({ path }) => !isTest(path) && path !== "core/index.ts"))
    for (const path of ownImportsOf(source)) {
      const known = importers.get(path) ?? new Set()
      importers.set(path, known.add(source.path))
    }
  // what is imported when it is needed, or starts a thread, is a file for that reason
  const lazy = new Set(
    sources.flatMap((source) =>
      [...withoutComments(source.text).matchAll(/(?:\bimport|new URL)\(\s*"(\.[^"]+)"/g)].map(
        ([, name]) => join(dirname(source.path), name!),
      ),
    ),
  )
  const tested = new Set(
    sources.filter(({ path }) => path.endsWith(".test.ts")).flatMap(ownImportsOf),
  )
  return (source) => {
    const { path } = source
    const [importer, another] = importers.get(path) ?? []
    const isWeb = path.startsWith("plugins/dashboard/web/")
    if (!/^(core|plugins|runtime)\//.test(path) || isTest(path) || isWeb) return []
    if (mayBeSmall.test(path) || tested.has(path) || lazy.has(path) || linesOf(source) >= minLines)
      return []
    return importer === undefined || another !== undefined
      ? []
      : [`has ${linesOf(source)} lines and one importer: join it to ${basename(importer)}`]
  }
}
