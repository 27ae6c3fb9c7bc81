import { createHash, randomBytes } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach } from "vitest"
import { systemClock } from "../../../../core/index.ts"
import { fakeLog } from "../../../../testing/fakes/log.ts"
import { type FileServer, startFileServer } from "../../../../testing/files-server.ts"
import type { PullContext } from "../context.ts"
import { freeBytes } from "../store/disk.ts"
import { fastTiming } from "./timing.ts"

export const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex")

/** Random bytes: they don't compress, so the sizes of archives are known. */
export const noise = (bytes: number): Buffer => randomBytes(bytes)

/** Gives every test of the file a fresh folder and server. */
export const setUp = () => {
  let dir = ""
  let server: FileServer
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "model-files-"))
    server = await startFileServer()
  })
  afterEach(async () => {
    await server.close()
    await rm(dir, { recursive: true, force: true })
  })
  const context = (more: Partial<PullContext> = {}): PullContext => ({
    modelsDir: join(dir, "models"),
    log: fakeLog(),
    clock: systemClock,
    fetch: globalThis.fetch,
    env: { HOME: dir, PIP_CONFIG_FILE: "/dev/null" },
    cwd: dir,
    timing: fastTiming,
    freeBytes,
    lock: undefined,
    isRenewal: false,
    ...more,
  })
  return { dir: () => dir, server: () => server, context }
}
