import { expect, test } from "vitest"
import { makeFolder, serverPid, startDatabase } from "../testing/processes.ts"
import { isAlive } from "./process-list.ts"

test("a command beside a server uses its PostgreSQL and leaves it", async () => {
  const folder = await makeFolder()
  const server = await startDatabase(folder, "server")
  const pid = serverPid(folder)!
  const command = await startDatabase(folder, "command")
  expect(await command.ask("select 1 as n")).toBe('[{"n":1}]')
  await command.close()
  expect(serverPid(folder)).toBe(pid)
  expect(await server.ask("select 2 as n")).toBe('[{"n":2}]')
  await server.close()
  expect(isAlive(pid)).toBe(false)
})

test("a command alone starts PostgreSQL and stops it", async () => {
  const folder = await makeFolder()
  const command = await startDatabase(folder, "command")
  expect(command.greeting).toBe("ready")
  const pid = serverPid(folder)!
  await command.close()
  expect(isAlive(pid)).toBe(false)
})

test("a command leaves its PostgreSQL to a server that came meanwhile", async () => {
  const folder = await makeFolder()
  const command = await startDatabase(folder, "command")
  const pid = serverPid(folder)!
  const server = await startDatabase(folder, "server")
  expect(server.greeting).toBe("ready")
  await command.close()
  expect(serverPid(folder)).toBe(pid)
  expect(await server.ask("select 1 as n")).toBe('[{"n":1}]')
  await server.close()
  expect(isAlive(pid)).toBe(false)
})

test("several commands at once make one PostgreSQL; the last one to leave stops it", async () => {
  const folder = await makeFolder()
  const commands = await Promise.all([
    startDatabase(folder, "command"),
    startDatabase(folder, "command"),
    startDatabase(folder, "command"),
  ])
  expect(commands.map((one) => one.greeting)).toEqual(["ready", "ready", "ready"])
  const pid = serverPid(folder)!
  const [first, ...others] = commands
  for (const one of others) await one.ask("select 1")
  await first?.close()
  expect(await others[0]?.ask("select 1 as n")).toBe('[{"n":1}]')
  for (const one of others) await one.close()
  expect(isAlive(pid)).toBe(false)
})
