import "reflect-metadata/lite"
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit, Schema, Scope, Stream } from "effect"
import { container } from "tsyringe"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import type { Deployment } from "../../core/services/deployment.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { fakeClock } from "../../testing/fakes/clock.ts"
import { fakeLog } from "../../testing/fakes/log.ts"
import { plugin } from "./plugin.ts"

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "storage-disk-"))
})
afterEach(() => rm(dataDir, { recursive: true, force: true }))

/** Starts the plugin as boot does, and closes it when `work` is done. */
const started = async <A>(
  settings: unknown,
  mode: Deployment["mode"],
  work: (
    log: ReturnType<typeof fakeLog>,
    storage: () => ReturnType<typeof resolveStorage>,
  ) => Promise<A>,
): Promise<A> => {
  const child = container.createChildContainer()
  const log = fakeLog()
  provide(child, Tokens.deployment, {
    name: "test",
    dataDir,
    modelsDir: dataDir,
    baseUrl: "http://127.0.0.1:1",
    mode,
  })
  provide(child, Tokens.clock, fakeClock())
  provide(child, Tokens.log, log)
  const scope = Scope.makeUnsafe()
  await Effect.runPromise(
    plugin.create(Schema.decodeUnknownSync(plugin.settings)(settings)).start!(child).pipe(
      Scope.provide(scope),
    ),
  )
  try {
    return await work(log, () => resolveStorage(child))
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
const resolveStorage = (child: Parameters<typeof resolve>[0]) => resolve(child, Tokens.storage)

it("keeps blobs below the data folder by default", async () => {
  const put = (storage: ReturnType<typeof resolveStorage>) =>
    Effect.runPromise(storage.put("k", Stream.make(new Uint8Array(1)), 1))
  await started({}, "server", async (_, storage) => put(storage()))
  await started({ folder: "elsewhere" }, "server", async (_, storage) => put(storage()))
  await started({ folder: join(dataDir, "absolute") }, "server", async (_, storage) =>
    put(storage()),
  )
  for (const folder of ["blobs", "elsewhere", "absolute"])
    expect(await readdir(join(dataDir, folder))).toContain("k~")
})

it("sweeps what a dead server left, but not beside a running one", async () => {
  await started({}, "server", async () => {})
  const leftover = join(dataDir, "blobs", "~incoming", "left")
  await writeFile(leftover, "half")
  await utimes(leftover, 1, 1)
  await started({}, "command", async () => {})
  expect(await readdir(join(dataDir, "blobs", "~incoming"))).toEqual(["left"])
  await started({}, "server", async (log) =>
    vi.waitFor(() => expect(log.lines).toMatchObject([{ level: "info", fields: { swept: 1 } }])),
  )
  expect(await readdir(join(dataDir, "blobs", "~incoming"))).toEqual([])
})

it("refuses to start where it can't write", async () => {
  await writeFile(join(dataDir, "file"), "")
  await expect(started({ folder: "file" }, "server", async () => {})).rejects.toMatchObject({
    _tag: "PluginError",
    plugin: "storage-disk",
  })
})
