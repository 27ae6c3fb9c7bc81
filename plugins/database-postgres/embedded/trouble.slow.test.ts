import { spawn } from "node:child_process"
import { chmod, chown, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { createServer } from "node:net"
import { join } from "node:path"
import { Cause, Effect, Exit, Option, Scope } from "effect"
import { expect, test } from "vitest"
import { fakeLog } from "../../../testing/fakes/log.ts"
import { clusterOf, makeFolder, serverPid, startDatabase } from "../testing/processes.ts"
import { findBinaries } from "./binaries.ts"
import { openEmbedded } from "./embedded.ts"
import { pidFilePath } from "./pid-file.ts"
import { isAlive } from "./process-list.ts"
import { candidates, runToEnd } from "./run-as.ts"
import { stopServer } from "./stop.ts"

/** Opens the server in this process; returns the failure, or the port. */
const open = async (folder: string, log = fakeLog()) => {
  const scope = Scope.makeUnsafe()
  const exit = await Effect.runPromiseExit(
    openEmbedded(clusterOf(folder), "server", log).pipe(Scope.provide(scope)),
  )
  const failure = Exit.isFailure(exit)
    ? Option.getOrUndefined(Cause.findErrorOption(exit.cause))?.message
    : undefined
  const address = Exit.isSuccess(exit) ? exit.value() : undefined
  return { failure, address, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

test("a broken data folder is named, and PostgreSQL's own words are passed on", async () => {
  const folder = await makeFolder()
  await (await open(folder)).close()
  await rm(join(folder, "postgres", "PG_VERSION"))
  const { failure, close } = await open(folder)
  expect(failure).toContain(`${folder}/postgres does not start`)
  expect(failure).toMatch(/not a valid data directory/)
  await close()
})

test("a lost password is said, and nothing is made anew", async () => {
  const folder = await makeFolder()
  await (await open(folder)).close()
  await rm(join(folder, "postgres.password"))
  const { failure, close } = await open(folder)
  expect(failure).toMatch(/postgres\.password is missing\. Put it back/)
  await close()
})

test("secrets are for the owner only", async () => {
  const folder = await makeFolder()
  const { close } = await open(folder)
  const modeOf = async (name: string) => (await stat(join(folder, name))).mode & 0o777
  expect([
    await modeOf("postgres.password"),
    await modeOf("postgres"),
    await modeOf("postgres.log"),
    await modeOf("postgres.port"),
    await modeOf("server.lock"),
  ]).toEqual([0o600, 0o700, 0o600, 0o600, 0o600])
  await close()
  expect(await readFile(join(folder, "postgres.log"), "utf8")).not.toContain(
    await readFile(join(folder, "postgres.password"), "utf8"),
  )
})

test("the port of last time is used again, and another one when it is taken", async () => {
  const folder = await makeFolder()
  const first = await open(folder)
  await first.close()
  const second = await open(folder)
  expect(second.address?.port).toBe(first.address?.port)
  await second.close()

  const other = createServer().listen(Number(first.address?.port), "127.0.0.1")
  const third = await open(folder)
  expect(third.address).toBeDefined()
  expect(third.address?.port).not.toBe(first.address?.port)
  await third.close()
  other.close()
})

test.skipIf(process.platform !== "linux")(
  "a postmaster.pid whose number now belongs to another program is put aside",
  async () => {
    const folder = await makeFolder()
    await (await open(folder)).close()
    const other = spawn(
      process.execPath,
      ["-e", "setInterval(() => {}, 1e6)", "/x/database-postgres/postgres"],
      { stdio: "ignore" },
    )
    await writeFile(
      pidFilePath(join(folder, "postgres")),
      [other.pid, join(folder, "postgres"), 1, 5432, "", "127.0.0.1", "", "ready", ""].join("\n"),
    )
    const log = fakeLog()
    const { failure, close } = await open(folder, log)
    expect(failure).toBeUndefined()
    expect(log.lines.map((line) => line.message)).toContain(
      "postmaster.pid names a process that is not the server of this folder; it was put aside",
    )
    await close()
    expect(other.exitCode ?? other.signalCode).toBeNull()
    other.kill()
  },
)

test.skipIf(process.platform !== "linux")(
  "a postmaster.pid whose number now belongs to the server of another folder: both run, and each is stopped alone",
  async () => {
    const [folder, neighbour] = [await makeFolder(), await makeFolder()]
    await (await open(folder)).close()
    const other = await open(neighbour)
    const pid = serverPid(neighbour)
    await writeFile(
      pidFilePath(join(folder, "postgres")),
      [pid, join(folder, "postgres"), 1, 5432, "", "127.0.0.1", "", "ready", ""].join("\n"),
    )
    await Effect.runPromise(stopServer(clusterOf(folder), fakeLog()))
    const { failure, close } = await open(folder)
    expect(failure).toBeUndefined()
    await close()
    expect(isAlive(pid!)).toBe(true)
    await other.close()
  },
)

test("a file where the folder should be is no crash", async () => {
  const folder = await makeFolder()
  await writeFile(join(folder, "postgres"), "")
  await writeFile(join(folder, "postgres.password"), "x")
  const { failure, close } = await open(folder)
  expect(failure).toContain("does not start")
  await close()
})

const isRoot = process.getuid?.() === 0
const asNobody = candidates(undefined).find((one) => one.uid === 65_534)
const nobodyReaches =
  isRoot &&
  asNobody !== undefined &&
  (await runToEnd(asNobody, findBinaries().postgres, ["--version"], 10_000)).code === 0

test.skipIf(!nobodyReaches)(
  "root without user namespaces: PostgreSQL runs as nobody, and later still does",
  async () => {
    const folder = await makeFolder()
    const path = process.env.PATH
    process.env.PATH = "/nonexistent"
    const first = await open(folder)
    process.env.PATH = path
    expect(first.failure).toBeUndefined()
    const owner = async () => (await stat(`/proc/${serverPid(folder)}`)).uid
    expect(await owner()).toBe(65_534)
    await first.close()

    const second = await open(folder)
    expect(second.failure).toBeUndefined()
    expect(await owner()).toBe(65_534)
    await second.close()
  },
)

test.skipIf(!nobodyReaches)(
  "root that loses its user namespaces hands its data over to nobody",
  async () => {
    const folder = await makeFolder()
    await (await open(folder)).close()
    const path = process.env.PATH
    process.env.PATH = "/nonexistent"
    await chmod(folder, 0o711)
    const { failure, close } = await open(folder)
    process.env.PATH = path
    expect(failure).toBeUndefined()
    expect((await stat(join(folder, "postgres", "base"))).uid).toBe(65_534)
    await close()
  },
)

test.skipIf(!nobodyReaches)("not root: PostgreSQL runs as the same user", async () => {
  const folder = await makeFolder()
  await chmod(folder, 0o711)
  const mine = join(folder, "mine")
  await mkdir(mine)
  await chown(mine, 65_534, 65_534)
  const fixture = await startDatabase(mine, "server", [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
  ])
  expect(fixture.greeting).toBe("ready")
  expect((await stat(`/proc/${serverPid(mine)}`)).uid).toBe(65_534)
  expect(await fixture.ask("select 1 as n")).toBe('[{"n":1}]')
  await fixture.close()
})
