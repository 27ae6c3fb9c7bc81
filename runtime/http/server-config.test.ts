import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Scope } from "effect"
import { afterAll, expect, it } from "vitest"
import { fakeLog } from "../../testing/fakes/log.ts"
import { assemble } from "../boot/assemble.ts"
import { serveDeployment } from "../boot/serve-deployment.ts"
import { loadConfig } from "../config/load.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-server-config-"))
const scope = Scope.makeUnsafe()
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  rmSync(folder, { recursive: true, force: true })
})

/** A whole deployment from a config file; the URL of its server. */
const serve = async (server: string): Promise<string> => {
  const file = join(folder, "rakit.yaml")
  const plugin = join(import.meta.dirname, "testing/quiet-stream-plugin.ts")
  writeFileSync(
    file,
    `dataDir: ${join(folder, "data")}\nserver: { host: 127.0.0.1, port: 0, ${server} }\nplugins: { ${plugin}: {} }\n`,
  )
  const started = Effect.flatMap(assemble(loadConfig(file, {}), "all", fakeLog()), (deployment) =>
    serveDeployment(deployment, {
      version: "0.0.0",
      onListening: () => {},
      onStarted: () => {},
      pulls: { report: () => {}, done: () => {} },
      onModels: () => {},
    }),
  )
  return (await Effect.runPromise(started.pipe(Scope.provide(scope)))).url
}

it("server.ssePingMs is the interval of the pings on an event stream", async () => {
  const url = await serve("ssePingMs: 100")
  const startedMs = performance.now()
  const response = await fetch(`${url}/quiet`)
  const text = response.body!.pipeThrough(new TextDecoderStream())
  let received = ""
  for await (const chunk of text) {
    received += chunk
    if (received.length >= ": ping\n\n".length * 3) break
  }
  expect(received).toMatch(/^(: ping\n\n){3}/)
  expect(performance.now() - startedMs).toBeGreaterThan(250)
})
