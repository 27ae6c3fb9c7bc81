import { readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { Cause, Effect, Exit } from "effect"
import { afterEach, beforeEach } from "vitest"
import { fakeLog } from "../../../../testing/fakes/log.ts"
import { type FileServer, startFileServer } from "../../../../testing/files-server.ts"
import { type ModelFilesOptions, makeModelFiles } from "../model-files.ts"
import { openSourceLock } from "../store/source-lock.ts"
import { setUp, sha256 } from "./fixture.ts"
import { fastTiming } from "./timing.ts"

/** A source whose branch moves. */
export const source = { url: "hf:owner/repo@main/model.gguf" }

/** A large file of that source's repository. */
export const large = (commit: string, body: Buffer, revisions: readonly string[] = []) => ({
  ...{ repo: "owner/repo", path: "model.gguf", isLarge: true, commit, body, revisions },
})

/** A fresh folder, hub and host of large files around every test. */
export const setUpHub = () => {
  const { dir, server: hub } = setUp()
  let cdn: FileServer
  beforeEach(async () => {
    cdn = await startFileServer()
  })
  afterEach(() => cdn.close())
  const lockFile = () => join(dir(), "models.lock.yaml")
  /** A server that starts with this folder's lock file. */
  const start = (
    env: Readonly<Record<string, string>> = {},
    more: Partial<ModelFilesOptions> = {},
  ) => {
    const log = fakeLog()
    const files = makeModelFiles({
      modelsDir: join(dir(), "models"),
      log,
      env: { HOME: dir(), HF_ENDPOINT: hub().url, ...env },
      cwd: dir(),
      timing: fastTiming,
      lock: openSourceLock(lockFile()),
      ...more,
    })
    const run = async (pulled: Effect.Effect<string, unknown>) => {
      const exit = await Effect.runPromiseExit(pulled)
      return Exit.isSuccess(exit)
        ? sha256(await readFile(exit.value))
        : String(Cause.squash(exit.cause))
    }
    return {
      files,
      log,
      events: () => log.lines.map(({ event }) => event),
      pull: (from: { readonly url: string } = source) => run(files.pull("svc", [from], () => {})),
      renew: () => run(files.renew("svc", [source], () => {})),
    }
  }
  return {
    hub,
    cdn: () => cdn,
    lockFile,
    lockText: () => readFile(lockFile(), "utf8").catch(() => ""),
    start,
    dropCache: () => rm(join(dir(), "models"), { recursive: true, force: true }),
  }
}
