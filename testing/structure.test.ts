import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { runsItsContracts } from "./structure/contracts.ts"
import { importsInNoCircle } from "./structure/import-cycles.ts"
import { keepsToItsLayer } from "./structure/layers.ts"
import { namesItsEvents, repeatsByTheHelper } from "./structure/mechanisms.ts"
import { declaresWhatItUses } from "./structure/plugin-tokens.ts"
import {
  builtFolders,
  filesIn,
  home,
  importsOf,
  isCode,
  isTest,
  ownImportsOf,
  type Rule,
  type Source,
  sourceFolders,
  sources,
  supportFolders,
  withoutComments,
} from "./structure/sources.ts"
import { keepsTokensInSections } from "./structure/token-sections.ts"

/** The structure of the repository, checked: what ARCHITECTURE.md draws and CONTRIBUTING.md asks. A violation reads `file: rule`. */
const isPackage = (name: string, wanted: string): boolean =>
  name === wanted || name.startsWith(`${wanted}/`)
const uses = (source: Source, ...packages: readonly string[]): boolean =>
  importsOf(source).some((name) => packages.some((wanted) => isPackage(name, wanted)))

const pluginOf = (path: string): string | undefined => /^plugins\/([^/]+)\//.exec(path)?.[1]

// -- who may import whom

const pointsLeft: Rule = (source) => {
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

const staysHome: Rule = (source) => {
  const mine = pluginOf(source.path)
  if (mine === undefined) return []
  return ownImportsOf(source)
    .filter((path) => path.startsWith("plugins/") && pluginOf(path) !== mine)
    .map((path) => `imports ${path}, but a plugin never imports another; they meet through ports`)
}

const knocksAtTheDoor: Rule = (source) => {
  if (isTest(source.path)) return []
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

/** A name of one word is a word of the language, too: it counts where the text says that it is a plugin. */
const knowsNoPluginByName: Rule = ({ path, text }) => {
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

const leavesTestsAlone: Rule = (source) => {
  if (isTest(source.path)) return []
  return ownImportsOf(source)
    .filter(isTest)
    .map((path) => `imports ${path}, but what runs never imports what tests`)
}

const keepsKoaInRuntime: Rule = (source) =>
  source.path.startsWith("runtime/") || !uses(source, "koa", "@koa/router")
    ? []
    : ["imports koa, but koa lives only in runtime/"]

const seesContainer =
  /^(core\/(tokens|plugin)\.ts|plugins\/[^/]+\/plugin\.ts|runtime\/boot(\/.*)?\.ts)$/
const keepsContainerAtBoot: Rule = (source) =>
  isTest(source.path) || seesContainer.test(source.path) || !uses(source, "tsyringe")
    ? []
    : [
        "imports tsyringe, but only plugin.ts files, runtime/boot and the contract of plugins (core/plugin.ts, core/tokens.ts) see the container",
      ]

const keepsQueriesInPlugins: Rule = (source) =>
  isTest(source.path) ||
  source.path.startsWith("plugins/") ||
  source.path === "core/ports/database.ts" ||
  !uses(source, "kysely")
    ? []
    : ["imports kysely, but queries live in the plugin that owns the tables"]

// -- how files look

const vague = new Set(["utils", "common", "helpers", "misc", "types", "manager"])
const isNamedWell: Rule = ({ path }) =>
  path
    .split("/")
    .filter((part) => vague.has(part.replace(/\..*$/, "")))
    .map((part) => `"${part}" says nothing; name what it is for`)

/** A worker's task is found by its default export, a tool's config too; plugins from outside are loaded by name. */
const mayExportDefault = /(-job\.ts|\.config\.ts|\.test\.ts|^examples\/.*\/plugin\.ts)$/
const exportsByName: Rule = ({ path, text }) =>
  mayExportDefault.test(path) || !/^export default\b/m.test(withoutComments(text))
    ? []
    : [
        "has a default export; exports are named (but for worker tasks, in *-job.ts, and config files)",
      ]

const isShort: Rule = ({ text }) => {
  const lines = text.trimEnd().split("\n").length
  return lines > 450 ? [`has ${lines} lines; 300 is the limit, under 80 the aim`] : []
}

const isFunctionHead = (line: string): boolean =>
  /(=>|\bfunction\b.*\)|^\s*(async |static |override )*\*?#?\w+(<.*>)?\(.*\)(: .+)?) \{$/.test(
    line,
  ) && !/^\s*(\} )?(if|for|while|switch|catch|else|do)\b/.test(line)

/** The formatter puts the end of a function at its start's indentation, so no parser is needed. */
const hasShortFunctions: Rule = ({ path, text }) => {
  if (isTest(path)) return []
  const lines = text.split("\n")
  return lines.flatMap((line, start) => {
    if (!isFunctionHead(line)) return []
    const indent = /^ */.exec(line)![0]
    const length = lines.slice(start + 1).findIndex((next) => next.startsWith(`${indent}}`)) + 2
    return length > 100
      ? [
          `line ${start + 1} begins a function of ${length} lines; 70 is the limit, under 40 the aim`,
        ]
      : []
  })
}

const isFinished: Rule = ({ text }) =>
  [...text.matchAll(/\b(?:TO|FIX|XX)(?:DO|ME|X)\b/g)].map(
    ([mark]) => `holds a ${mark}; do it, or write an issue`,
  )

/** The server has one clock; a browser has its own. */
const clocks = ["core/services/clock.ts", "plugins/dashboard/web/clock.js"]
const asksTheClock: Rule = ({ path, text }) => {
  if (isTest(path) || !/^(core|plugins)\//.test(path) || clocks.includes(path)) return []
  return /\bDate\.now\(|\bnew Date\(\)/.test(withoutComments(text)) && isCode(path)
    ? ["takes the time by itself; time comes from the Clock service or a parameter"]
    : []
}

const knownEffects = new Set(
  /`Effect`: ([\w,\s]+)/
    .exec(readFileSync(join(home, "CONTRIBUTING.md"), "utf8"))?.[1]
    ?.match(/\w+/g),
)
const usesTheKnownEffects: Rule = ({ path, text }) =>
  isTest(path)
    ? []
    : [...new Set(withoutComments(text).match(/\bEffect\.[a-z]\w*/g))]
        .filter((name) => !knownEffects.has(name.replace("Effect.", "")))
        .map(
          (name) =>
            `uses ${name}, which is not on CONTRIBUTING.md's list; take one that is, or add it there`,
        )

const rules: Readonly<Record<string, Rule>> = {
  "imports point left": pointsLeft,
  "plugins never import plugins": staysHome,
  "only plugins/index.ts imports plugins, by their plugin.ts and command.ts": knocksAtTheDoor,
  "runtime knows no plugin by name": knowsNoPluginByName,
  "what runs never imports what tests": leavesTestsAlone,
  "a folder imports only the layers below it": keepsToItsLayer,
  "koa only in runtime": keepsKoaInRuntime,
  "tsyringe only in plugin.ts and boot": keepsContainerAtBoot,
  "kysely only in plugins": keepsQueriesInPlugins,
  "no import cycle": importsInNoCircle(() => true, false),
  "no import cycle in core, even of types": importsInNoCircle(
    (path) => path.startsWith("core/") && !isTest(path),
    true,
  ),
  "each token stands in the section of its type's folder": keepsTokensInSections,
  "plugins declare the tokens that they use": declaresWhatItUses,
  "names say what is inside": isNamedWell,
  "named exports": exportsByName,
  "files of at most 300 lines": isShort,
  "functions of at most 70 lines": hasShortFunctions,
  "nothing left for later": isFinished,
  "time only from the clock": asksTheClock,
  "the part of Effect that we use": usesTheKnownEffects,
  "periodic work runs through repeat": repeatsByTheHelper,
  "log lines have an event": namesItsEvents,
  "a port's provider runs the port's contract": runsItsContracts,
}

describe("every source file", () => {
  for (const [name, rule] of Object.entries(rules))
    it(name, () =>
      expect(
        sources.flatMap((source) => rule(source).map((wrong) => `${source.path}: ${wrong}`)),
      ).toEqual([]),
    )
})

const plugins = readdirSync(join(home, "plugins"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort()

describe("every plugin", () => {
  it.each(plugins)("%s has plugin.ts, README.md, a test, and its folder's name", (plugin) => {
    const files = filesIn(`plugins/${plugin}`)
    const wrong = ["plugin.ts", "README.md"]
      .filter((file) => !files.includes(`plugins/${plugin}/${file}`))
      .map((file) => `plugins/${plugin}: has no ${file}`)
    if (!files.some((file) => file.endsWith(".test.ts")))
      wrong.push(`plugins/${plugin}: has no test`)
    const text = sources.find(({ path }) => path === `plugins/${plugin}/plugin.ts`)?.text
    if (text !== undefined && !text.includes(`name: "${plugin}"`))
      wrong.push(
        `plugins/${plugin}/plugin.ts: the plugin is not called "${plugin}" like its folder`,
      )
    expect(wrong).toEqual([])
  })

  it("is in the one visible list, plugins/index.ts", () => {
    const listed = ownImportsOf(sources.find(({ path }) => path === "plugins/index.ts")!).flatMap(
      (path) => pluginOf(path) ?? [],
    )
    expect([...new Set(listed)].sort()).toEqual(plugins)
  })
})

describe("the whole", () => {
  it("has six source folders", () => {
    const found = readdirSync(home, { withFileTypes: true }).filter(
      (entry) => entry.isDirectory() && !entry.name.startsWith("."),
    )
    const unknown = found
      .map(({ name }) => name)
      .filter((name) => ![...sourceFolders, ...supportFolders, ...builtFolders].includes(name))
    expect(
      unknown.map(
        (name) =>
          `${name}/: source lives in ${sourceFolders.join(", ")}; there is no seventh folder`,
      ),
    ).toEqual([])
  })

  it("has a core of under 2,400 lines of code; docstrings are asked for, so they don't count", () => {
    const core = sources.filter(({ path }) => path.startsWith("core/") && !isTest(path))
    const lines = core.reduce(
      (sum, { text }) =>
        sum +
        withoutComments(text)
          .split("\n")
          .filter((line) => line.trim() !== "").length,
      0,
    )
    expect(
      lines,
      "lines of core/ without tests and testing/; what is not needed by every deployment belongs into a plugin",
    ).toBeLessThan(2400)
  })
})

/** A rule that can't fail proves nothing: one file for each that must be refused. */
const broken: Readonly<Record<keyof typeof rules, Source>> = {
  "imports point left": { path: "core/a.ts", text: 'import {\n  b,\n} from "../runtime/b.ts"' },
  "plugins never import plugins": {
    path: "plugins/a/a.test.ts",
    text: 'const b = await import("../b/plugin.ts")',
  },
  "only plugins/index.ts imports plugins, by their plugin.ts and command.ts": {
    path: "runtime/a.ts",
    text: 'export * from "../plugins/b/plugin.ts"',
  },
  "runtime knows no plugin by name": {
    path: "runtime/a.ts",
    text: 'const fix = "add the plugin storage-disk under plugins."',
  },
  "what runs never imports what tests": {
    path: "plugins/a/a.ts",
    text: 'import { fakeClock } from "../../testing/fakes/clock.ts"',
  },
  "a folder imports only the layers below it": {
    path: "plugins/backend-onnx/weights/a.ts",
    text: 'import type { Vocabulary } from "../tokenizer/vocabulary.ts"',
  },
  "koa only in runtime": { path: "plugins/a/a.ts", text: 'import type { Context } from "koa"' },
  "tsyringe only in plugin.ts and boot": {
    path: "plugins/a/inner/plugin.ts",
    text: 'import { container } from "tsyringe"',
  },
  "kysely only in plugins": { path: "runtime/a.ts", text: 'import { sql } from "kysely"' },
  "no import cycle": {
    path: "core/json.ts",
    text: 'export * from "./index.ts"',
  },
  "no import cycle in core, even of types": {
    path: "core/json.ts",
    text: 'import type { Reply } from "./ports/endpoint.ts"',
  },
  "each token stands in the section of its type's folder": {
    path: "core/tokens.ts",
    text: `import type { Log } from "./services/log.ts"
// -- kernel services, lent
// -- what plugins provide
  log: token<Log>("log",`,
  },
  "plugins declare the tokens that they use": {
    path: "plugins/a/plugin.ts",
    text: "needs: [], provides: [],\n  resolve(container, Tokens.log)",
  },
  "names say what is inside": { path: "core/utils/a.ts", text: "" },
  "named exports": { path: "core/a.ts", text: "export default 1" },
  "files of at most 300 lines": { path: "core/a.ts", text: "x\n".repeat(451) },
  "functions of at most 70 lines": {
    path: "core/a.ts",
    text: `export const f = (a: number): void => {\n${"  a()\n".repeat(99)}}\n`,
  },
  "nothing left for later": { path: "core/a.test.ts", text: `// ${["TO", "DO"].join("")}: later` },
  "time only from the clock": { path: "plugins/a/a.ts", text: "const now = Date.now()" },
  "the part of Effect that we use": { path: "core/a.ts", text: "const a = Effect.sandbox(b)" },
  "periodic work runs through repeat": {
    path: "plugins/a/a.ts",
    text: "work.pipe(Effect.forever)",
  },
  "log lines have an event": { path: "plugins/a/a.ts", text: "deps.log.warn(event, what, {})" },
  "a port's provider runs the port's contract": {
    path: "plugins/storage-tape/plugin.ts",
    text: "provides: [Tokens.storage, Tokens.endpoints],",
  },
}

describe("the rules themselves", () => {
  it.each(Object.entries(broken))("refuse what breaks: %s", (name, source) =>
    expect(rules[name]!(source)).toHaveLength(1),
  )
})
