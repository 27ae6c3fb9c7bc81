import {
  builtFolders,
  importsOf,
  isTest,
  ownImportsOf,
  plugins,
  type Rule,
  type Source,
  withoutComments,
} from "./sources.ts"

const isPackage = (name: string, wanted: string): boolean =>
  name === wanted || name.startsWith(`${wanted}/`)
const uses = (source: Source, ...packages: readonly string[]): boolean =>
  importsOf(source).some((name) => packages.some((wanted) => isPackage(name, wanted)))

export const pluginOf = (path: string): string | undefined => /^plugins\/([^/]+)\//.exec(path)?.[1]

export const pointsLeft: Rule = (source) => {
  const layers = ["core", "plugins", "runtime", "testing"]
  const layerOf = (path: string) => layers.indexOf(path.split("/")[0]!)
  const mine = layerOf(source.path)
  if (isTest(source.path) || mine < 0) return []
  return ownImportsOf(source)
    .filter(
      (path) =>
        layerOf(path) > mine || (layerOf(path) < 0 && !builtFolders.includes(path.split("/")[0]!)),
    )
    .map(
      (path) =>
        `imports ${path}, but imports only point left: core <- plugins <- runtime <- testing`,
    )
}

export const staysHome: Rule = (source) => {
  const mine = pluginOf(source.path)
  if (mine === undefined) return []
  return ownImportsOf(source)
    .filter((path) => path.startsWith("plugins/") && pluginOf(path) !== mine)
    .map((path) => `imports ${path}, but a plugin never imports another; they meet through ports`)
}

export const knocksAtTheDoor: Rule = (source) => {
  // docs/ computes figures of a plugin by the plugin's own code
  if (isTest(source.path) || source.path.startsWith("docs/")) return []
  return ownImportsOf(source)
    .filter((path) => pluginOf(path) !== undefined && pluginOf(path) !== pluginOf(source.path))
    .filter(
      (path) =>
        source.path !== "plugins/index.ts" || !/^plugins\/[^/]+\/(plugin|command)\.ts$/.test(path),
    )
    .map(
      (path) =>
        `imports ${path}, but only plugins/index.ts imports a plugin, and only its plugin.ts and command.ts`,
    )
}

/**
 * A name of one word is a word of the language, too: it counts where the text says that it is a
 * plugin.
 */
export const knowsNoPluginByName: Rule = ({ path, text }) => {
  if (!path.startsWith("runtime/") || isTest(path)) return []
  const code = withoutComments(text)
  return plugins
    .filter((name) =>
      (name.includes("-")
        ? new RegExp(`(?<![\\w/-])${name}(?![\\w-])`)
        : new RegExp(`plugins?\\W+${name}\\b`)
      ).test(code),
    )
    .map((name) => `names the plugin ${name}, but runtime finds plugins by what they provide`)
}

export const leavesTestsAlone: Rule = (source) => {
  if (isTest(source.path)) return []
  return ownImportsOf(source)
    .filter(isTest)
    .map((path) => `imports ${path}, but what runs never imports what tests`)
}

const seesContainer =
  /^(core\/(tokens|plugin)\.ts|plugins\/[^/]+\/plugin\.ts|runtime\/boot(\/.*)?\.ts)$/
export const keepsContainerAtBoot: Rule = (source) =>
  isTest(source.path) || seesContainer.test(source.path) || !uses(source, "tsyringe")
    ? []
    : [
        "imports tsyringe, but only plugin.ts files, runtime/boot and the contract of plugins (core/plugin.ts, core/tokens.ts) see the container",
      ]

export const keepsQueriesInPlugins: Rule = (source) =>
  isTest(source.path) ||
  source.path.startsWith("plugins/") ||
  source.path === "core/ports/database.ts" ||
  // backups read and write the tables of all plugins, by their names alone
  source.path.startsWith("runtime/backup/") ||
  !uses(source, "kysely")
    ? []
    : ["imports kysely, but queries live in the plugin that owns the tables"]
