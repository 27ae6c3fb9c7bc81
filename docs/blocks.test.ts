import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Result, type Schema } from "effect"
import { transform } from "esbuild"
import { describe, expect, it, test } from "vitest"
import { parse } from "yaml"
import { builtinPlugins } from "../plugins/index.ts"
import { decodePart } from "../runtime/config/decode.ts"
import { interpolate } from "../runtime/config/interpolate.ts"
import { DeploymentConfig } from "../runtime/config/schema.ts"
import { type Block, blocksIn, guideBlocks } from "./blocks.ts"
import { root } from "./site/pages.ts"

/** What a block says that is wrong. */
type Check = (block: Block) => Promise<readonly string[]>

// every variable is set, and empty
const environment = new Proxy({}, { get: () => "" })

/** What an entry of a page may leave out, as it shows something else. */
const someModel = { id: "a", task: "chat", limits: { contextTokens: 1 }, backend: "onnx" }

const problemsOf = (schema: Schema.Top, value: unknown): readonly string[] => {
  const { value: filled, fromEnvironment } = interpolate(value, environment)
  const decoded = decodePart(schema as never, filled, [], fromEnvironment)
  return Result.isSuccess(decoded) ? [] : decoded.failure.map((problem) => JSON.stringify(problem))
}

const pluginProblems = async (name: string, settings: unknown): Promise<readonly string[]> => {
  const load = builtinPlugins[name]
  if (load) return problemsOf((await load()).plugin.settings, settings ?? {})
  return /^(\.|rakit-)/.test(name) ? [] : [`${name} is neither a key of the file nor a plugin`]
}

/** What is wrong with the options of an entry of `models`. */
const optionProblems = async (
  entry: typeof someModel & { readonly options?: unknown },
): Promise<readonly string[]> => {
  const { backend, task, options } = entry
  const plugins = await Promise.all(Object.values(builtinPlugins).map((load) => load()))
  const schema = plugins.flatMap(({ plugin }) => plugin.modelOptions?.[backend]?.[task] ?? [])[0]
  return schema === undefined ? [] : problemsOf(schema, options ?? {})
}

/** A part of a config file: some of its keys, the settings of plugins, or entries of `models`. */
const checkYaml: Check = async ({ code }) => {
  const parsed = parse(code) as Record<string, unknown> | unknown[]
  const whole = Array.isArray(parsed) ? { models: parsed } : parsed
  const problems = Object.entries(whole).map(async ([key, value]) => {
    if (key === "plugins")
      return (
        await Promise.all(
          Object.entries(value as object).map(([name, settings]) => pluginProblems(name, settings)),
        )
      ).flat()
    if (key === "models") {
      const models = (value as object[]).map((model) => ({ ...someModel, ...model }))
      return [
        ...problemsOf(DeploymentConfig.fields.models, models),
        ...(await Promise.all(models.map(optionProblems))).flat(),
      ]
    }
    const field = DeploymentConfig.fields[key as keyof typeof DeploymentConfig.fields]
    return field ? problemsOf(field, value) : pluginProblems(key, value)
  })
  return (await Promise.all(problems)).flat()
}

const checkJson: Check = async ({ code }) => {
  const isJson = (text: string): boolean => {
    try {
      JSON.parse(text)
      return true
    } catch {
      return false
    }
  }
  const isLines = code.trim().split("\n").every(isJson)
  return isLines || isJson(code) ? [] : ["is not JSON"]
}

const checkScript: Check = async ({ code, language }) => {
  const loader = language === "ts" ? "ts" : "js"
  return transform(code, { loader, format: "esm", logLevel: "silent" }).then(
    () => [],
    (error) => [String(error)],
  )
}

const scripts = (
  JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    scripts: Record<string, string>
  }
).scripts
const configuration = readFileSync(join(root, "docs/configuration.md"), "utf8")

/** `npx rakit models list`: the commands that docs/configuration.md names, which a test compares. */
const lineProblems = (line: string): readonly string[] => {
  const [, rakit] = /^npx rakit ([a-z]+)/.exec(line) ?? []
  if (rakit)
    return new RegExp(`(rakit|;) ${rakit}\\b`).test(configuration) ? [] : [`no command ${rakit}`]
  const [, npm] = /^npm (?:run )?([\w:-]+)/.exec(line) ?? []
  if (npm) return npm === "install" || npm === "ci" || npm in scripts ? [] : [`no script ${npm}`]
  const [, file] = /^node (\S+)/.exec(line) ?? []
  if (file) return existsSync(join(root, file)) ? [] : [`no file ${file}`]
  return line.startsWith("curl -fsS ") ? [] : [`not checked: ${line}`]
}
const checkShell: Check = async ({ code }) =>
  code
    .replaceAll(/\\\n/g, " ")
    .split("\n")
    .map((line) => line.replace(/(^|\s)#.*$/, "").trim())
    .filter((line) => line !== "")
    .flatMap((line) => line.split(" && "))
    .map((line) => line.replace(/^(export )?([A-Z_]+=\S+ ?)+/, "").trim())
    .filter((line) => line !== "")
    .flatMap(lineProblems)

const checks: Readonly<Record<string, Check>> = {
  yaml: checkYaml,
  json: checkJson,
  js: checkScript,
  ts: checkScript,
  sh: checkShell,
}
/** Drawings, and files of other programs. */
const noCode = ["", "text", "ini"]

describe("every block of code of the guide", () => {
  const blocks = guideBlocks().filter(({ language }) => !noCode.includes(language))

  it.each(blocks.map((block) => [`${block.page}:${block.line}`, block] as const))(
    "%s",
    async (_, block) => {
      if (block.notRun !== undefined) return expect(block.notRun).toMatch(/\w+ \w+/)
      const check = checks[block.language]
      expect(check && (await check(block))).toEqual([])
    },
  )

  it("is found, and most of them are checked", () => {
    expect(blocks.length).toBeGreaterThan(90)
    expect(blocks.filter(({ notRun }) => notRun).length).toBeLessThan(blocks.length / 5)
  })
})

test("a wrong block is noticed", async () => {
  const block = (language: string, code: string): Block => ({
    ...{ page: "a.md", line: 1, notRun: undefined },
    ...{ language, code },
  })
  const wrong = [
    block("yaml", "server: { prt: 1 }"),
    block("yaml", "plugins: { queue-postgres: { pollMs: 1 } }"),
    block("yaml", "models: [{ id: a, tusk: chat }]"),
    block("yaml", "models: [{ id: a, options: { precison: int8 } }]"),
    block("yaml", "models: [{ id: a, backend: remote, options: { retries: many } }]"),
    block("json", "{"),
    block("js", "const a = "),
    block("sh", "npx rakit destroy"),
    block("sh", "rm -rf /"),
  ]
  for (const one of wrong) expect(await checks[one.language]!(one), one.code).not.toEqual([])
})

test("blocks are found with their marker, indented ones, too", () => {
  const text = "a\n\n<!-- not run: needs a GPU -->\n\n```sh\nx\n```\n\n- b\n  ```js\n  y()\n  ```\n"
  expect(
    blocksIn("a.md", text).map(({ language, code, notRun }) => [language, code, notRun]),
  ).toEqual([
    ["sh", "x\n", "needs a GPU"],
    ["js", "y()\n", undefined],
  ])
})
