import { execFileSync } from "node:child_process"
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { readPidFile } from "../../plugins/database-postgres/embedded/pid-file.ts"
import {
  embeddedIn,
  type StoppableDatabase,
  startStoppableDatabase,
  startWire,
} from "../../testing/platform/stoppable-database.ts"
import { type Platform, startPlatform } from "../../testing/platform.ts"

export interface Outage {
  /** From the beginning until `/readyz` says so. */
  readonly noticedMs: number
  /** From the end of the cause until the database itself takes a statement again. */
  readonly databaseMs: number
  /** From the end of the cause until a call is 200 again. */
  readonly callMs: number
  /** And until `/readyz` says ready. */
  readonly readyMs: number
}

export interface OutageCase {
  readonly name: string
  run(): Promise<Outage>
}

const since = (beganMs: number) => performance.now() - beganMs

/** The time until `look` is true; NaN when it takes too long. */
const until = async (look: () => Promise<boolean>, limitMs = 60_000): Promise<number> => {
  const beganMs = performance.now()
  while (!(await look().catch(() => false))) {
    if (since(beganMs) > limitMs) return Number.NaN
    await sleep(10)
  }
  return since(beganMs)
}

const isReady = async ({ url }: Platform) => (await fetch(`${url}/readyz`)).ok

const call = async ({ url, credentials }: Platform): Promise<boolean> => {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${credentials.api_key}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ model: "svc-lyt", messages: [{ role: "user", content: "hello" }] }),
  })
  await response.arrayBuffer()
  return response.status === 200
}

interface Scene {
  readonly server: Platform
  readonly database: Pick<StoppableDatabase, "query">
  begin(): Promise<unknown> | undefined
  /** Ends the cause; the database comes back by itself from then on. */
  end?(): Promise<unknown> | undefined
}

const measure = async ({ server, database, begin, end }: Scene, lastsMs: number) => {
  await until(() => call(server))
  await begin()
  // what ends by itself may be over before anybody has noticed
  const noticedMs = await until(async () => !(await isReady(server)), end ? 60_000 : 3_000)
  if (end) await sleep(lastsMs)
  // the database is started by `end`: its own time counts from there, too
  const ended = end?.()
  const takes = async () => (await database.query("SELECT txid_current()")).length === 1
  const [databaseMs, callMs, readyMs] = await Promise.all([
    until(takes),
    until(() => call(server)),
    until(() => isReady(server)),
    ended,
  ])
  return { noticedMs, databaseMs: databaseMs!, callMs: callMs!, readyMs: readyMs! }
}

/** Closes everything in reverse order. */
const withAll = async <A>(
  use: (keep: (close: () => unknown) => void) => Promise<A>,
): Promise<A> => {
  const closers: (() => unknown)[] = []
  try {
    return await use((close) => closers.unshift(close))
  } finally {
    for (const close of closers) await close()
  }
}

type External = { readonly database: StoppableDatabase; readonly server: Platform }

const external = (name: string, scene: (kept: External) => Scene, lastsMs: number): OutageCase => ({
  name,
  run: () =>
    withAll(async (keep) => {
      const database = await startStoppableDatabase()
      keep(database.close)
      const server = await startPlatform({ database: new URL(database.url) })
      keep(server.close)
      return measure(scene({ database, server }), lastsMs)
    }),
})

const killed: OutageCase = {
  name: "embedded, kill -9",
  run: () =>
    withAll(async (keep) => {
      const dataDir = mkdtempSync(join(tmpdir(), "rakit-bench-"))
      keep(() => rmSync(dataDir, { recursive: true, force: true }))
      const server = await startPlatform({ database: "embedded", dataDir })
      keep(server.close)
      const begin = async () => {
        process.kill(readPidFile(join(dataDir, "postgres"))!.pid, "SIGKILL")
      }
      return measure({ server, database: embeddedIn(dataDir), begin }, 0)
    }),
}

const cut = (lastsMs: number): OutageCase => ({
  name: `network cut for ${lastsMs / 1000} s`,
  run: () =>
    withAll(async (keep) => {
      const database = await startStoppableDatabase()
      keep(database.close)
      const wire = await startWire(database.url)
      keep(wire.close)
      const server = await startPlatform({ database: new URL(wire.url) })
      keep(server.close)
      const begin = async () => wire.cut()
      const end = async () => wire.mend()
      return measure({ server, database, begin, end }, lastsMs)
    }),
})

const fill = (file: string) => {
  const opened = openSync(file, "w")
  for (const bytes of [2 ** 20, 2 ** 10, 1])
    try {
      for (;;) writeSync(opened, Buffer.alloc(bytes))
    } catch {
      // full
    }
  closeSync(opened)
}

/** Undefined where mounting is not allowed. */
const full = (lastsMs: number): OutageCase | undefined => {
  const disk = mkdtempSync(join(tmpdir(), "rakit-bench-disk-"))
  const mount = () =>
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=400m", "tmpfs", disk], { stdio: "ignore" })
  try {
    mount()
    execFileSync("umount", [disk])
  } catch {
    rmSync(disk, { recursive: true })
    return undefined
  }
  return {
    name: `embedded, disk full for ${lastsMs / 1000} s`,
    run: () =>
      withAll(async (keep) => {
        mount()
        keep(() => execFileSync("umount", [disk]))
        chmodSync(disk, 0o711)
        const dataDir = join(disk, "data")
        const server = await startPlatform({ database: "embedded", dataDir })
        keep(server.close)
        const database = embeddedIn(dataDir)
        const begin = async () => {
          fill(join(disk, "filler"))
          // without room for its write-ahead log it crashes, and can't start
          const log =
            "SELECT pg_switch_wal(), pg_logical_emit_message(true, 'x', repeat('x', 1000000))"
          await until(async () => !(await database.query(log)), 20_000)
        }
        const end = async () => rmSync(join(disk, "filler"))
        return measure({ server, database, begin, end }, lastsMs)
      }),
  }
}

const terminate =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"

export const outageCases = (lastsMs: number): readonly OutageCase[] =>
  [
    killed,
    external(
      `external, stopped for ${lastsMs / 1000} s`,
      ({ server, database }) => ({ server, database, begin: database.stop, end: database.start }),
      lastsMs,
    ),
    full(lastsMs),
    cut(lastsMs),
    external(
      "all connections ended",
      ({ server, database }) => ({ server, database, begin: () => database.query(terminate) }),
      0,
    ),
  ].filter((one) => one !== undefined)
