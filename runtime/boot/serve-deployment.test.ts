import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Exit, Scope } from "effect"
import { afterAll, expect, it, vi } from "vitest"
import { PluginError } from "../../core/errors.ts"
import { resolve, Tokens } from "../../core/tokens.ts"
import { fakeLog } from "../../testing/index.ts"
import { loadConfig } from "../config/load.ts"
import { assemble } from "./assemble.ts"
import { serveDeployment } from "./serve-deployment.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-serve-deployment-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const root = join(import.meta.dirname, "../..")

/** A deployment of two models, of whose plugins one starts as `start` says. */
const serve = async (start: Effect.Effect<void, PluginError>, scope: Scope.Scope) => {
  const file = join(folder, "rakit.yaml")
  const plugins = ["runtime/http/testing/quiet-stream-plugin.ts", "testing/fakes/backend.ts"]
  writeFileSync(
    file,
    `dataDir: ${folder}/data
server: { host: 127.0.0.1, port: 0 }
plugins: { ${plugins.map((plugin) => `${join(root, plugin)}: {}`).join(", ")} }
models:
  - { id: a, task: chat, backend: fake, limits: { contextTokens: 100, maxOutputTokens: 10 } }
  - { id: b, task: chat, backend: fake, limits: { contextTokens: 100, maxOutputTokens: 10 } }
`,
  )
  const deployment = await Effect.runPromise(
    assemble(loadConfig(file, {}), "all", fakeLog()).pipe(Scope.provide(scope)),
  )
  const order = deployment.order.map((named) =>
    named.plugin.name === "quiet-stream"
      ? { ...named, instance: { ...named.instance, start: () => start } }
      : named,
  )
  const said: string[] = []
  const served = Effect.runPromiseExit(
    serveDeployment(
      { ...deployment, order },
      {
        version: "0.0.0",
        onListening: () => said.push("listening"),
        onStarted: () => said.push("started"),
        pulls: { report: () => {}, done: () => {} },
        onModels: (failed) => said.push(`models, ${failed.length} failed`),
      },
    ).pipe(Scope.provide(scope)),
  )
  const { entries, state } = resolve(deployment.container, Tokens.catalogue)
  const states = () => entries.map(({ id }) => state(id).state)
  const hasStarted = () => resolve(deployment.container, Tokens.deployment).hasStarted
  return { served, said, states, hasStarted }
}

it("opens the first model while other plugins start, and says that all are ready when these have started", async () => {
  const scope = Scope.makeUnsafe()
  const door = Deferred.makeUnsafe<void>()
  const { served, said, states, hasStarted } = await serve(Deferred.await(door), scope)
  await vi.waitFor(() => expect(states()[0]).toBe("ready"))
  expect(states()[1]).not.toBe("ready")
  expect([said, hasStarted()]).toEqual([["listening"], false])
  Deferred.doneUnsafe(door, Exit.void)
  await served
  expect(hasStarted()).toBe(true)
  await vi.waitFor(() => expect(said).toEqual(["listening", "started", "models, 0 failed"]))
  expect(states()).toEqual(["ready", "ready"])
  await Effect.runPromise(Scope.close(scope, Exit.void))
})

it("ends when a plugin can't start, and says nothing of models", async () => {
  const scope = Scope.makeUnsafe()
  const gone = new PluginError({ plugin: "quiet-stream", message: "gone" })
  const { served, said } = await serve(Effect.fail(gone), scope)
  expect(await served).toEqual(Exit.fail(gone))
  await Effect.runPromise(Scope.close(scope, Exit.void))
  expect(said).toEqual(["listening"])
})
