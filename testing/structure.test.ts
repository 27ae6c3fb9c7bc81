import { readdirSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { runsItsContracts } from "./structure/contracts.ts"
import { importsInNoCircle } from "./structure/import-cycles.ts"
import {
  keepsContainerAtBoot,
  keepsQueriesInPlugins,
  knocksAtTheDoor,
  knowsNoPluginByName,
  leavesTestsAlone,
  pluginOf,
  pointsLeft,
  staysHome,
} from "./structure/imports.ts"
import { keepsToItsLayer } from "./structure/layers.ts"
import { namesItsEvents, readsUrlsByTheHelper, repeatsByTheHelper } from "./structure/mechanisms.ts"
import { declaresWhatItUses } from "./structure/plugin-tokens.ts"
import {
  asksTheClock,
  exportsByName,
  hasShortFunctions,
  isFinished,
  isNamedWell,
  isShort,
  usesTheKnownEffects,
} from "./structure/shape.ts"
import { joinsItsOneImporter } from "./structure/small-files.ts"
import {
  builtFolders,
  filesIn,
  home,
  isTest,
  ownImportsOf,
  plugins,
  type Rule,
  type Source,
  sourceFolders,
  sources,
  supportFolders,
  withoutComments,
} from "./structure/sources.ts"
import { keepsTokensInSections } from "./structure/token-sections.ts"
import { saysWhatTheFieldSays, writesPlainDocstrings } from "./structure/words.ts"

/**
 * The structure of the repository, checked: what ARCHITECTURE.md draws and CONTRIBUTING.md asks. A
 * violation reads `file: rule`.
 */
const rules: Readonly<Record<string, Rule>> = {
  "imports point left": pointsLeft,
  "plugins never import plugins": staysHome,
  "only plugins/index.ts imports plugins, by their plugin.ts and command.ts": knocksAtTheDoor,
  "runtime knows no plugin by name": knowsNoPluginByName,
  "what runs never imports what tests": leavesTestsAlone,
  "a folder imports only the layers below it": keepsToItsLayer,
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
  "URLs are read by urlOf": readsUrlsByTheHelper,
  "log lines have an event": namesItsEvents,
  "a port's provider runs the port's contract": runsItsContracts,
  "small files join their one importer": joinsItsOneImporter(sources),
  "the field's words": saysWhatTheFieldSays,
  "docstrings say what is returned": writesPlainDocstrings,
}

describe("every source file", () => {
  for (const [name, rule] of Object.entries(rules))
    it(name, () =>
      expect(
        sources.flatMap((source) => rule(source).map((wrong) => `${source.path}: ${wrong}`)),
      ).toEqual([]),
    )
})

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

  it("has a core of under 2,800 lines of code; docstrings are asked for, so they don't count", () => {
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
    ).toBeLessThan(2800)
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
  "files of at most 300 lines": { path: "core/a.ts", text: "x\n".repeat(301) },
  "functions of at most 70 lines": {
    path: "core/a.ts",
    text: `export const f = (a: number): void => {\n${"  a()\n".repeat(69)}}\n`,
  },
  "nothing left for later": { path: "core/a.test.ts", text: `// ${["TO", "DO"].join("")}: later` },
  "time only from the clock": { path: "plugins/a/a.ts", text: "const now = Date.now()" },
  "the part of Effect that we use": { path: "core/a.ts", text: "const a = Effect.sandbox(b)" },
  "periodic work runs through repeat": {
    path: "plugins/a/a.ts",
    text: "work.pipe(Effect.forever)",
  },
  "URLs are read by urlOf": { path: "plugins/a/a.ts", text: "if (!URL.canParse(text)) return" },
  "log lines have an event": { path: "plugins/a/a.ts", text: "deps.log.warn(event, what, {})" },
  "a port's provider runs the port's contract": {
    path: "plugins/storage-tape/plugin.ts",
    text: "provides: [Tokens.storage, Tokens.endpoints],",
  },
  "small files join their one importer": {
    path: "core/call/unsettled.ts",
    text: "export const a = 1",
  },
  "the field's words": { path: "core/a.ts", text: `const test${"Hou"}${"se"} = 1` },
  "docstrings say what is returned": { path: "core/a.ts", text: `/** ${"Answers"} the sum. */` },
}

describe("the rules themselves", () => {
  it.each(Object.entries(broken))("refuse what breaks: %s", (name, source) =>
    expect(rules[name]!(source)).toHaveLength(1),
  )
})
