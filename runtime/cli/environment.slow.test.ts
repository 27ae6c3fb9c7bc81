import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Cause, Effect, Exit } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { isScalar, type Node, parseDocument, stringify, visit } from "yaml"
import { fakeLog } from "../../testing/fakes/log.ts"
import { runCli } from "../../testing/platform.ts"
import { assemble } from "../boot/assemble.ts"
import { describeModels } from "../boot/served-models.ts"
import { loadConfig } from "../config/load.ts"
import { describeDeployment } from "./check.ts"

const root = join(import.meta.dirname, "../..")
const folder = mkdtempSync(join(tmpdir(), "rakit-environment-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const secret = "Hunter2-never-shown"
const isShown = (text: string) => text.toLowerCase().includes("hunter2")

const isText = (key: unknown, node: Node): boolean =>
  key !== "key" && isScalar(node) && typeof node.value === "string"

/** The config file once for each of its texts, which then comes from the environment. */
const withSecrets = (name: string): readonly string[] => {
  const text = readFileSync(join(root, "config", name), "utf8").replace(
    "../testing",
    `${root}/testing`,
  )
  let texts = 0
  visit(parseDocument(text), { Scalar: (key, node) => void (isText(key, node) && texts++) })
  return Array.from({ length: texts }, (_, wanted) => {
    const document = parseDocument(text)
    let at = 0
    visit(document, {
      Scalar: (key, node) => {
        if (isText(key, node) && at++ === wanted) node.value = "${SECRET}"
      },
    })
    return stringify(document)
  })
}

/** What `rakit check` says: a refusal, or the table. */
const saidOf = async (file: string, env: Record<string, string>): Promise<string> => {
  const program = Effect.scoped(
    Effect.gen(function* () {
      const config = yield* Effect.try({
        try: () => loadConfig(file, env),
        catch: (cause) => cause as Error,
      })
      const deployment = yield* assemble(config, "command", fakeLog())
      const known = yield* describeModels(deployment)
      const devices = { shown: (name: string) => name, missing: [] }
      return describeDeployment({ deployment, known, troubles: [], devices })
    }),
  )
  const exit = await Effect.runPromiseExit(program)
  return Exit.isSuccess(exit) ? exit.value : String(Cause.squash(exit.cause))
}

describe("a value of the environment", () => {
  it.each(["starter.yaml", "test.yaml", "minimal.yaml"])(
    "is in no refusal and in no table of %s, wherever it stands",
    async (name) => {
      const file = join(folder, name)
      const env = { SECRET: secret, RAKIT_DATA: join(folder, "data") }
      let refusals = 0
      for (const text of withSecrets(name)) {
        writeFileSync(file, text)
        const said = await saidOf(file, env)
        expect([isShown(said), text]).toEqual([false, text])
        if (said.includes("Fix: ")) refusals++
      }
      expect(refusals).toBeGreaterThan(5)
    },
    120_000,
  )

  it.each<[string, Record<string, string>, RegExp]>([
    [
      "a database's password",
      { DATABASE_URL: `postgres://a:${secret}@127.0.0.1:9/x` },
      /:9\/x can't/,
    ],
    ["what is no URL of a database", { DATABASE_URL: secret }, /plugins\.database-postgres\.url/],
    ["what is no URL of a mail server", { SMTP_URL: secret }, /plugins\.mail-smtp\.url/],
    ["an address that the machine lacks", { HOST: secret }, /no address \$\{HOST\}/],
  ])("is not shown by a start that is refused: %s", async (_, env, message) => {
    const given = { RAKIT_DATA: join(folder, "data"), PORT: "0", ...env }
    const { code, stdout, stderr } = await runCli(["serve", "config/starter.yaml"], given)
    expect([code, isShown(stdout + stderr)]).toEqual([1, false])
    expect(stderr).toMatch(message)
  })

  it("is not shown by `rakit check`, with the process's own environment", async () => {
    const file = join(folder, "backend.yaml")
    const model = "{ id: a, task: chat, backend: '${SECRET}', limits: { contextTokens: 9 } }"
    writeFileSync(file, `plugins: {}\nmodels: [${model}]`)
    const { code, stdout, stderr } = await runCli(["check", file], { SECRET: secret })
    expect([code, isShown(stdout + stderr)]).toEqual([1, false])
    expect(stderr).toMatch(/the\sbackend\s'\$\{SECRET\}'/)
  })
})
