import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { afterEach, beforeEach, expect, it } from "vitest"
import { parse } from "yaml"
import type { ModelId } from "../../../core/services/ids.ts"
import { fakeLog } from "../../../testing/fakes/log.ts"
import { type FileServer, startFileServer } from "../../../testing/files-server.ts"
import { makeModelFiles } from "./model-files.ts"
import { openSourceLock } from "./store/source-lock.ts"
import { commitNamed, publish } from "./testing/fake-hub.ts"
import { noise, setUp, sha256 } from "./testing/fixture.ts"
import { fastTiming } from "./testing/timing.ts"

const { dir, server: hub } = setUp()
let cdn: FileServer
beforeEach(async () => {
  cdn = await startFileServer()
})
afterEach(() => cdn.close())

const source = { url: "hf:owner/repo@main/model.gguf" }
const lockFile = () => join(dir(), "models.lock.yaml")

/** A server with a cache of its own, which has read the lock file. */
const start = (cache: string) => {
  const files = makeModelFiles({
    modelsDir: join(dir(), cache),
    log: fakeLog(),
    env: { HOME: dir(), HF_ENDPOINT: hub().url },
    cwd: dir(),
    timing: fastTiming,
    lock: openSourceLock(lockFile()),
  })
  const pull = () => Effect.runPromise(files.pull("svc" as ModelId, [source], () => {}))
  return async () => sha256(await readFile(await pull()))
}

const publishAs = (commit: string, body: Buffer) =>
  publish(hub(), cdn, {
    ...{ repo: "owner/repo", path: "model.gguf", isLarge: true, revisions: ["main"] },
    ...{ commit, body },
  })

it("servers with a lock file in common use what the first of them locked, also when the branch moves between", async () => {
  const [weights, newer] = [noise(300_000), noise(200_000)]
  const [first, second] = [start("first"), start("second")]
  const one = commitNamed("1")
  publishAs(one, weights)
  expect(await first()).toBe(sha256(weights))
  publishAs(commitNamed("2"), newer)
  expect(await second()).toBe(sha256(weights))
  expect(parse(await readFile(lockFile(), "utf8"))).toEqual({
    models: { svc: [{ url: source.url, commit: one, sha256: sha256(weights) }] },
  })
  // what its cache has under the branch's name is not taken for what is locked
  expect(await start("second")()).toBe(sha256(weights))
})
