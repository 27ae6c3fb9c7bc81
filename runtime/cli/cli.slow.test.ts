import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Cause, Effect, Exit } from "effect"
import { describe, expect, it } from "vitest"
import { fakeLog } from "../../testing/fakes/log.ts"
import { runCli } from "../../testing/platform.ts"
import { assemble } from "../boot/assemble.ts"
import { loadConfig } from "../config/load.ts"
import { ConfigError } from "../config/problems.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-cli-"))
let count = 0
const config = (text: string): string => {
  const file = join(folder, `fixture-${++count}.yaml`)
  writeFileSync(file, text)
  return file
}
const plugin = (name: string, body: string): string => {
  const file = join(folder, `${name}.ts`)
  writeFileSync(
    file,
    `import { definePlugin, Tokens } from "${join(import.meta.dirname, "../../core/index.ts")}"\nimport { Schema } from "effect"\nexport const plugin = definePlugin({ name: "${name}", api: 1, about: "", settings: Schema.Struct({}), create: () => ({}), ${body} })\n`,
  )
  return `./${name}.ts`
}

/** What `rakit check` does before it prints. */
const refusalOf = async (file: string): Promise<string> => {
  const program = Effect.scoped(
    Effect.flatMap(
      Effect.try({ try: () => loadConfig(file, {}), catch: (cause) => cause as Error }),
      (config) => assemble(config, "command", fakeLog()),
    ),
  )
  const exit = await Effect.runPromiseExit(program)
  const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
  if (error instanceof ConfigError) return error.message
  throw error ?? new Error("it was not refused")
}

describe("rakit check", () => {
  it("prints the assembled fixture and starts nothing", async () => {
    const { code, stdout } = await runCli(["check", "config/starter.yaml"], {
      RAKIT_DATA: join(folder, "never-made"),
      RAKIT_API_KEY: "a-secret-key-of-mine",
    })
    expect(code).toBe(0)
    for (const part of [
      "database-postgres",
      "database, health-check",
      "/v1/chat/completions",
      "/v2/rerank",
      "50 MB",
      "svc-omni",
      // of a plugin
      "svc-rerank",
      "svc-iris:dark",
      "ledger (optional)",
    ])
      expect(stdout).toContain(part)
    expect(Math.max(...stdout.split("\n").map(({ length }) => length))).toBeLessThanOrEqual(100)
    expect(stdout).toMatch(/^This config is fine: starter, /)
    expect(stdout).not.toContain("a-secret-key-of-mine")
  })

  it("prints the same facts as JSON, by -c", async () => {
    const { code, stdout } = await runCli(["check", "-c", "config/starter.yaml", "--json"], {
      RAKIT_DATA: join(folder, "never-made"),
      RAKIT_API_KEY: "a-secret-key-of-mine",
    })
    expect(code).toBe(0)
    expect(stdout).not.toContain("a-secret-key-of-mine")
    const { models, routes, ...rest } = JSON.parse(stdout)
    expect(rest).toMatchObject({ object: "deployment", is_fine: true, name: "starter" })
    expect(routes).toContainEqual(expect.objectContaining({ method: "POST", path: "/v2/rerank" }))
    // nothing is known of models that are not pulled
    expect(models).toContainEqual(
      expect.objectContaining({
        model: "svc-prme",
        window: "81920 (promised)",
        price: "input Rp 15,000/1M, output Rp 60,000/1M",
      }),
    )
    expect(models).toContainEqual(
      expect.objectContaining({ model: "svc-rerank", price: "search unit Rp 2.5" }),
    )
  })

  it.each<[string, () => string, string]>([
    ["an unknown plugin", () => "plugins: { endpoint-chatt: {} }", "write 'endpoint-chat'?"],
    [
      "an unknown setting",
      () => "plugins: { billing-free: { colour: red } }",
      "unknown key 'colour'",
    ],
    [
      "two providers",
      () => "plugins: { billing-free: {}, billing-ledger: {}, database-postgres: {} }",
      "'billing' is provided twice, by 'billing-free' and 'billing-ledger'",
    ],
    [
      "a missing provider",
      () => "plugins: { accounts: {}, database-postgres: {} }",
      "add the plugin billing-free or billing-ledger under plugins.",
    ],
    [
      "keyed endpoints without identity",
      () => "plugins: { endpoint-chat: {} }",
      "the endpoint 'chat.completions' needs 'identity'",
    ],
    [
      "a model without a backend",
      () =>
        "plugins: {}\nmodels: [{ id: a, task: chat, backend: onxx, limits: { contextTokens: 9, maxOutputTokens: 9 } }]",
      "no plugin here provides the backend 'onxx'",
    ],
    [
      "a price that can't be paid",
      () =>
        "plugins: {}\nmodels: [{ id: a, task: chat, backend: onnx, limits: { contextTokens: 9, maxOutputTokens: 9 }, price: { input: 0.1234567 } }]",
      "models[0].price",
    ],
    [
      "a plugin that throws",
      () =>
        `plugins: { ${plugin("thrower", "needs: [], provides: [], create: () => { throw new Error('not today') }")}: {} }`,
      "not today",
    ],
    [
      "a plugin without a factory",
      () => `plugins: { ${plugin("bare", "needs: [], provides: [], create: undefined")}: {} }`,
      "the plugin has no `create`",
    ],
    ["a path without a file", () => "plugins: { ./nowhere.ts: {} }", "there is no file"],
    [
      "a cycle",
      () =>
        `plugins: { ${plugin("left", "needs: [Tokens.queue], provides: [Tokens.webhook]")}: {}, ${plugin("right", "needs: [Tokens.webhook], provides: [Tokens.queue]")}: {} }`,
      "these plugins need each other",
    ],
    [
      "a plugin of another contract",
      () => `plugins: { ${plugin("old", "needs: [], provides: [], ...{ api: 0 }")}: {} }`,
      "speaks version 0",
    ],
    [
      "a variable that is not set",
      () => "plugins: {}\nname: ${NOT_SET_ANYWHERE}",
      "set NOT_SET_ANYWHERE",
    ],
  ])("refuses %s", async (_, text, message) => {
    const file = config(text())
    const refusal = await refusalOf(file)
    expect(refusal).toContain(message)
    expect(refusal).toContain("Fix: ")
    expect(refusal).toContain(file.split("/").at(-1))
  })
})

it("says how Node can be brought to load a TypeScript plugin from a folder of its own", async () => {
  writeFileSync(join(folder, "typed.ts"), "const typed: number = 1\nexport const plugin = typed\n")
  const { code, stderr } = await runCli(["check", config("plugins: { ./typed.ts: {} }")])
  expect(code).toBe(1)
  // newer Node loads it, and then it is no plugin
  const canLoad = Number(process.versions.node.split(".")[0]) >= 22
  expect(stderr).toContain(canLoad ? "the module exports no `plugin`" : '{"type": "module"}')
})

describe("rakit serve", () => {
  it("refuses a broken config before anything starts", async () => {
    const { code, stdout, stderr } = await runCli(["serve", config("plugins: { nope: {} }")])
    expect([code, stdout]).toEqual([1, ""])
    expect(stderr).toContain("there is no plugin 'nope'")
  })

  it("exits with 1 and names the model when none can be opened", async () => {
    const broken =
      "{ id: bad, task: chat, backend: fake, limits: { contextTokens: 9, maxOutputTokens: 9 }, options: { broken: 'the file x.gguf is cut' } }"
    const file = config(
      `plugins: { ${join(import.meta.dirname, "../../testing/fakes/backend.ts")}: {} }\nserver: { port: 0 }\ndataDir: ${folder}/data\nmodels: [${broken}]`,
    )
    const { code, stderr } = await runCli(["serve", file])
    expect(code).toBe(1)
    expect(stderr).toContain("bad: the file x.gguf is cut")
  })

  it("says that the data folder can't be made", async () => {
    writeFileSync(join(folder, "a-file"), "")
    const { code, stderr } = await runCli([
      "serve",
      config(`plugins: {}\ndataDir: ${folder}/a-file/data\nserver: { host: 127.0.0.1, port: 0 }`),
    ])
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^The data folder .* can't be used: a part of the path is no folder \(ENOTDIR\)\. Fix: .*\n$/,
      ),
    ])
  })

  it.skipIf(process.platform !== "linux")(
    "refuses a folder where nothing can be made, at once, in every command",
    async () => {
      const file = join(import.meta.dirname, "../../config/test.yaml")
      for (const command of ["serve", "migrate"]) {
        const { code, stdout, stderr } = await runCli([command, file], { RAKIT_DATA: "/proc/nope" })
        expect([command, code, stdout]).toEqual([command, 1, ""])
        expect(stderr).toMatch(/^The data folder .* can't be used: .*\. Fix: set dataDir .*\n$/)
      }
      const models = { ...{ RAKIT_DATA: join(folder, "data") }, RAKIT_MODELS: "/proc/nope" }
      const { code, stderr } = await runCli(["serve", "config/starter.yaml"], models)
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^The model cache .* can't be made/),
      ])
    },
  )

  it("does not say that it listens before nothing can refuse the start any more", async () => {
    const { code, stdout, stderr } = await runCli(
      ["serve", join(import.meta.dirname, "../../config/test.yaml")],
      { RAKIT_DATA: join(folder, "data"), DATABASE_URL: "postgres://x:y@127.0.0.1:9/z" },
    )
    expect([code, stderr]).toEqual([1, expect.stringContaining("127.0.0.1:9/z")])
    expect(stdout).toContain("is starting on http://127.0.0.1:")
    expect(stdout).not.toContain("listens on")
  })

  it("says that a port is in use", async () => {
    const { createServer } = await import("node:net")
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve))
    const { port } = other.address() as { port: number }
    const { code, stderr } = await runCli([
      "serve",
      config(`plugins: {}\ndataDir: ${folder}/data\nserver: { host: 127.0.0.1, port: ${port} }`),
    ])
    other.close()
    expect(code).toBe(1)
    expect(stderr).toMatch(new RegExp(`"http.port_in_use"[^]*Port ${port} is in use`))
  })
})

describe("rakit models", () => {
  const file = config(
    `plugins: { ${join(import.meta.dirname, "../../testing/fakes/backend.ts")}: {} }\nmodelsDir: ${folder}/models\nmodels: [{ id: m, task: chat, backend: fake, limits: { contextTokens: 9, maxOutputTokens: 9 }, sources: [{ url: 'file:./weights.bin', sha256: '${"0".repeat(64)}' }] }]`,
  )

  it("names the file and the reason, and exits with 1", async () => {
    writeFileSync(join(folder, "weights.bin"), "not these")
    const { code, stderr } = await runCli(["models", "pull", "-c", file])
    expect(code).toBe(1)
    expect(stderr).toMatch(/weights\.bin/)
    expect((await runCli(["models", "verify", "-c", file])).code).toBe(1)
  })

  it("knows only the models of the config", async () => {
    const { code, stderr } = await runCli(["models", "pull", "-c", file, "svc-nope"])
    expect(code).toBe(1)
    expect(stderr).toContain("There is no model 'svc-nope' in this config")
  })

  it("pulls an adapter by the name that `models list` gives it", async () => {
    const limits = "limits: { contextTokens: 9, maxOutputTokens: 9 }"
    const adapters = "adapters: [{ id: a, sources: [{ url: ./adapter.bin }] }]"
    const file = config(
      `plugins: { ${join(import.meta.dirname, "../../testing/fakes/backend.ts")}: {} }\nmodelsDir: ${folder}/models\nmodels: [{ id: m, task: chat, backend: fake, ${limits}, sources: [{ url: ./none.bin }], ${adapters} }]`,
    )
    const adapter = join(folder, "adapter.bin")
    writeFileSync(adapter, "a")
    expect(await runCli(["models", "pull", "-c", file, "m:a"])).toMatchObject({
      code: 0,
      stdout: `m:a: ${adapter}\n`,
    })
    const { stderr } = await runCli(["models", "pull", "-c", file, "m:b"])
    expect(stderr).toContain("There is no model 'm:b' in this config. Models: m, m:a.")
  })
})

describe("rakit fsck", () => {
  it("refuses a folder without data, and makes none", async () => {
    const away = join(folder, "away")
    const file = join(import.meta.dirname, "../../config/test.yaml")
    const refusal = {
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(`There are no data in ${away}, so nothing can be compared.`),
    }
    expect(await runCli(["fsck", file], { RAKIT_DATA: away, DATABASE_URL: "" })).toMatchObject(
      refusal,
    )
    expect(existsSync(away)).toBe(false)
    mkdirSync(away)
    expect(await runCli(["fsck", file], { RAKIT_DATA: away, DATABASE_URL: "" })).toMatchObject(
      refusal,
    )
    expect(readdirSync(away)).toEqual([])
  })
})
