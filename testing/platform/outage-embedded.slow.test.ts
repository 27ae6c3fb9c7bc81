import { chmodSync, closeSync, openSync, rmSync, writeSync } from "node:fs"
import { join } from "node:path"
import { expect, it, vi } from "vitest"
import { readPidFile } from "../../plugins/database-postgres/embedded/pid-file.ts"
import { mountSmallDisk } from "../small-disk.ts"
import { writeMoneyConfig } from "./money-config.ts"
import {
  apiKey,
  chat,
  chatsBegun,
  codeOf,
  costIdr,
  expectWhole,
  folder,
  kept,
  post,
  readiness,
  sound,
  standing,
  start,
  untilWell,
  useOutageFixture,
} from "./outage-fixture.ts"
import { embeddedIn } from "./stoppable-database.ts"

vi.setConfig({ testTimeout: 240_000, hookTimeout: 60_000 })
useOutageFixture()

it("the embedded server is killed: answers in flight arrive, and calls go on", async () => {
  const config = writeMoneyConfig(folder, { freeCreditIdr: 100_000 })
  const server = kept(await start(config, "embedded"))
  const database = embeddedIn(folder)
  const { answers } = await chatsBegun(database, server.url, 10)
  // it may lose their holds, which are written without waiting for the disk
  process.kill(readPidFile(join(folder, "postgres"))!.pid, "SIGKILL")
  await untilWell(server.url)
  expectWhole(await answers)
  await vi.waitFor(
    async () =>
      expect(await standing(database)).toEqual([`11 settled ${(10 * costIdr + 0.128).toFixed(3)}`]),
    20_000,
  )
  await sound(config, server.env)
})

const disk = mountSmallDisk(400)
it.skipIf(disk === undefined)(
  "a full disk is 507 everywhere, /readyz says so, and it goes on when there is room",
  async () => {
    const config = writeMoneyConfig(folder, { freeCreditIdr: 100_000 })
    chmodSync(disk!, 0o711)
    const data = join(disk!, "data")
    const server = kept(await start(config, "embedded", data))
    const database = embeddedIn(data)
    const { answers } = await chatsBegun(database, server.url, 10)
    const filler = join(disk!, "filler")
    const fd = openSync(filler, "w")
    for (let size = 2 ** 20; size >= 1; size = size > 1 ? size / 4 : 0)
      try {
        for (;;) writeSync(fd, Buffer.alloc(size))
      } catch {}
    await vi.waitFor(
      async () =>
        expect(await readiness(server.url)).toMatchObject({
          status: "failing",
          database: { ok: false, reason: expect.stringContaining("full") },
        }),
      10_000,
    )
    const until507 = async () => {
      for (;;) {
        const { status, text } = await post(server.url, "/v1/chat/completions", chat(3, false))
        if (status === 507) return expect(codeOf(text)).toBe("storage_full")
        // some fit into what is left
        if (status !== 200) expect([status, codeOf(text)]).toEqual([503, "database_unavailable"])
      }
    }
    await until507()
    const form = new FormData()
    form.set("purpose", "batch")
    form.set("file", new Blob(["x".repeat(2_000_000)]), "a.jsonl")
    const upload = await fetch(`${server.url}/v1/files`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}` },
      body: form,
    })
    expect([upload.status, codeOf(await upload.text())]).toEqual([507, "storage_full"])
    expect(Number(upload.headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
    expectWhole(await answers)
    closeSync(fd)
    rmSync(filler)
    await untilWell(server.url)
    await vi.waitFor(async () => expect((await readiness(server.url)).status).toBe("ready"), 20_000)
    const open = "SELECT FROM ledger_call WHERE state = 'open'"
    await vi.waitFor(async () => expect(await database.query(open)).toHaveLength(0), 20_000)
    await sound(config, server.env)
  },
)
