import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Platform, runCli, startPlatform } from "../../testing/platform.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-doctor-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let count = 0
const config = (text: string): string => {
  const file = join(folder, `${++count}.yaml`)
  writeFileSync(file, text)
  return file
}
interface Report {
  readonly is_well: boolean
  readonly findings: readonly { name: string; state: string; detail: string; fix?: string }[]
}
const examine = async (file: string, env: Record<string, string> = {}) => {
  const { code, stdout } = await runCli(["doctor", "-c", file, "--json"], env)
  const report = JSON.parse(stdout) as Report
  return { code, report, of: (name: string) => report.findings.find((one) => one.name === name) }
}

describe("rakit doctor", () => {
  let platform: Platform
  beforeAll(async () => {
    platform = await startPlatform()
  }, 120_000)
  afterAll(() => platform?.close())

  it("asks database and storage beside a running server, and knows the server at its port", async () => {
    const { code, report, of } = await examine("config/test.yaml", {
      ...platform.env,
      PORT: new URL(platform.url).port,
    })
    expect([code, report.is_well]).toEqual([0, true])
    expect(of("database")).toMatchObject({
      state: "ok",
      detail: expect.stringMatching(/^PostgreSQL \d/),
    })
    expect(of("storage")?.state).toBe("ok")
    expect(of("clock")?.state).toBe("ok")
    expect(of("port")?.detail).toMatch(/^a Rakit server answers on port \d+: ready$/)
    expect(of("model svc-lyt")?.state).toBe("ok")
  })

  it("makes no data where there are none", async () => {
    const { code, of } = await examine("config/test.yaml", {
      RAKIT_DATA: join(folder, "never"),
      DATABASE_URL: "",
      PORT: "0",
    })
    expect([code, of("data")?.detail]).toEqual([0, "none yet: the first start makes them"])
  })

  it("exits with 1 and says how to mend a port that is used and a database that is away", async () => {
    const other = createServer()
    await new Promise<void>((done) => other.listen(0, "127.0.0.1", done))
    const { port } = other.address() as { port: number }
    const file = config(
      `plugins: { database-postgres: { url: "postgres://me:secret@127.0.0.1:9/none" } }\ndataDir: ${folder}/data\nserver: { host: 127.0.0.1, port: ${port} }`,
    )
    const { code, of } = await examine(file)
    other.close()
    expect(code).toBe(1)
    expect(of("port")).toMatchObject({
      state: "problem",
      detail: `another program uses port ${port}`,
      fix: expect.stringContaining("server.port"),
    })
    const found = of("database") ?? of("services")
    expect(found?.state).toBe("problem")
    expect(JSON.stringify(found)).not.toContain("secret")
  })

  it("opens the headers of models' files, and says what is wrong with one, or that it is missing", async () => {
    writeFileSync(join(folder, "text.gguf"), "no model")
    const entry = (id: string, file: string) =>
      `{ id: ${id}, task: chat, backend: onnx, limits: { contextTokens: 9, maxOutputTokens: 9 }, sources: [{ url: ./${file} }] }`
    const file = config(
      `plugins: { backend-onnx: {}, endpoint-chat: {}, billing-free: {}, identity-static: { keys: [] } }\ndataDir: ${folder}/none\nserver: { port: 0 }\nmodels: [${entry("a", "text.gguf")}, ${entry("b", "gone.gguf")}]`,
    )
    const { code, of } = await examine(file)
    expect(code).toBe(1)
    expect(of("model a")).toMatchObject({
      state: "problem",
      detail: expect.stringMatching(/text\.gguf: .*magic/),
    })
    expect(of("model b")).toMatchObject({
      state: "problem",
      detail: expect.stringContaining("gone.gguf"),
      fix: expect.stringContaining("put the model's file there"),
    })
  })

  it("a config file that is refused is a problem, and the machine is looked at all the same", async () => {
    const { code, stdout } = await runCli(["doctor", config("plugins: { endpoint-chatt: {} }")])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^\d problems?.*\n\n/)
    expect(stdout).toMatch(/^PROBLEM +config .*/m)
    expect(stdout).toContain("write 'endpoint-chat'?")
    expect(stdout).toMatch(/^ok +versions +rakit /m)
    expect(Math.max(...stdout.split("\n").map(({ length }) => length))).toBeLessThanOrEqual(100)
  })
})
