import { existsSync, readdirSync } from "node:fs"
import { expect, test, vi } from "vitest"
import { makeFolder, serverPid, spawnDatabase, startDatabase } from "../testing/processes.ts"
import { isAlive, signal } from "./process-list.ts"

const untilTrue = (what: () => boolean) => vi.waitUntil(what, { timeout: 60_000, interval: 20 })

/** Adds a row; returns the number of rows. */
const addRow =
  "with one as (insert into kept default values returning 1) select (select count(*) from kept)::int + 1 as n"

test("made, stopped, and started again with its data", async () => {
  const folder = await makeFolder()
  const first = await startDatabase(folder, "server")
  expect(first.greeting).toBe("ready")
  await first.ask("create table kept (id serial)")
  expect(await first.ask(addRow)).toBe('[{"n":1}]')
  const pid = serverPid(folder)!
  await first.close()
  expect(isAlive(pid)).toBe(false)
  expect(existsSync(`${folder}/server.lock`)).toBe(false)

  const second = await startDatabase(folder, "server")
  expect(await second.ask(addRow)).toBe('[{"n":2}]')
  await second.close()
})

test("kill -9 of the owner: the next one adopts the server, with all that was committed, and stops it at its end", async () => {
  const folder = await makeFolder()
  const first = await startDatabase(folder, "server")
  await first.ask("create table kept (id serial)")
  await first.ask(addRow)
  const pid = serverPid(folder)!
  await first.kill()
  expect(isAlive(pid)).toBe(true)

  const second = await startDatabase(folder, "server")
  expect(second.greeting).toBe("ready")
  expect(serverPid(folder)).toBe(pid)
  expect(await second.ask(addRow)).toBe('[{"n":2}]')
  await second.close()
  expect(isAlive(pid)).toBe(false)
})

test("kill -9 of the server: it is started again and the pool recovers", async () => {
  const folder = await makeFolder()
  const fixture = await startDatabase(folder, "server")
  await fixture.ask("create table kept (id serial)")
  await fixture.ask(addRow)
  const pid = serverPid(folder)!
  signal(pid, "SIGKILL")
  await untilTrue(() => ![undefined, pid].includes(serverPid(folder)))
  let answer = await fixture.ask(addRow)
  while (answer.startsWith("failed")) answer = await fixture.ask(addRow)
  expect(answer).toBe('[{"n":2}]')
  await fixture.close()
})

test("kill -9 of everything, again and again: nothing that was committed is lost", async () => {
  const folder = await makeFolder()
  let rows = 0
  for (let round = 0; round < 3; round += 1) {
    const fixture = await startDatabase(folder, "server")
    expect(fixture.greeting).toBe("ready")
    if (round === 0) await fixture.ask("create table kept (id serial)")
    for (let i = 0; i < 20; i += 1) {
      rows += 1
      expect(await fixture.ask(addRow)).toBe(`[{"n":${rows}}]`)
    }
    signal(serverPid(folder)!, "SIGKILL")
    await fixture.kill()
  }
})

const makings = (folder: string): readonly string[] =>
  readdirSync(folder).filter(
    (name) => name.startsWith("postgres.making") && existsSync(`${folder}/${name}/home`),
  )

test("kill -9 while the cluster is made is harmless", async () => {
  const folder = await makeFolder()
  for (const afterMs of [0, 300]) {
    const left = new Set(makings(folder))
    const killed = spawnDatabase(folder, "server")
    await untilTrue(() => makings(folder).some((name) => !left.has(name)))
    await new Promise((resolve) => setTimeout(resolve, afterMs))
    await killed.kill()
    expect((await killed.greeted).greeting).toBe("gone")
  }
  const fixture = await startDatabase(folder, "server")
  expect(fixture.greeting).toBe("ready")
  expect(readdirSync(folder).filter((name) => name.includes("making"))).toEqual([])
  await fixture.close()
})

test("a start waits for an owner that is being killed, and gets its server", async () => {
  const folder = await makeFolder()
  const first = await startDatabase(folder, "server")
  await first.ask("create table kept (id serial)")
  const second = spawnDatabase(folder, "server")
  expect(await second.waits).toBe(true)
  await first.kill()
  const next = await second.greeted
  expect(next.greeting).toBe("ready")
  expect(await next.ask(addRow)).toBe('[{"n":1}]')
  await next.close()
})

test("a second server on the same folder is refused, and the first goes on", async () => {
  const folder = await makeFolder()
  const first = await startDatabase(folder, "server")
  const second = await startDatabase(folder, "server")
  expect(second.greeting).toMatch(
    new RegExp(`^failed another server \\(process ${first.pid}\\) runs on this data folder`),
  )
  expect(await first.ask("select 1 as n")).toBe('[{"n":1}]')
  await first.close()
})

test("an owner that exits without closing, as on a second signal, leaves no server behind", async () => {
  const folder = await makeFolder()
  const fixture = await startDatabase(folder, "server")
  const pid = serverPid(folder)!
  await fixture.exit()
  await untilTrue(() => !isAlive(pid))
})
