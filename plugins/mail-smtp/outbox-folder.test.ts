import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import PostalMime from "postal-mime"
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest"
import type { FakeLog } from "../../testing/index.ts"
import { mailOf, openOutboxFixture } from "./testing/outbox-fixture.ts"

let fixture: Awaited<ReturnType<typeof openOutboxFixture>>
const folder = () => join(fixture.dataDir, "outbox")
beforeAll(async () => {
  fixture = await openOutboxFixture()
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await fixture.reset()
  rmSync(folder(), { recursive: true, force: true })
})
afterAll(() => fixture?.close())

const linesOf = (log: FakeLog, count: number) =>
  expect
    .poll(() => log.lines.filter((line) => line.level !== "debug").length, { timeout: 10_000 })
    .toBe(count)

it("without a server each mail becomes a file that mail programs read, and a log line without its text", async () => {
  const { send, log } = await fixture.open()
  await send(mailOf())
  await linesOf(log, 1)
  const [name] = readdirSync(folder())
  const file = join(folder(), name!)
  expect(name).toMatch(/^20260115T120000Z-[0-9a-f-]{36}\.eml$/)
  expect(log.lines[0]).toMatchObject({
    level: "info",
    fields: { to: "user1@example.com", subject: "Verifikasi – mail 1", file },
  })
  expect(JSON.stringify(log.lines)).not.toContain("token-1")
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(statSync(folder()).mode & 0o777).toBe(0o700)
  const raw = readFileSync(file)
  expect(raw.toString("latin1").replaceAll("\r\n", "")).not.toMatch(/[\r\n]/)
  const mail = await PostalMime.parse(raw)
  expect(mail).toMatchObject({
    from: { name: "Rakit", address: "no-reply@localhost" },
    to: [{ address: "user1@example.com" }],
    subject: "Verifikasi – mail 1",
  })
  expect(mail.text?.replaceAll("\r\n", "\n").trim()).toBe(mailOf().text.trim())
  expect(mail.html?.trim()).toBe(mailOf().html)
  expect(raw.toString()).toContain("Content-Type: multipart/alternative")
  await expect.poll(async () => (await fixture.rows()).length).toBe(0)
  expect(readdirSync(folder())).toHaveLength(1)
})

it("in production a warning is all: no file, no text in the log", async () => {
  vi.stubEnv("NODE_ENV", "production")
  const { send, log } = await fixture.open()
  await send(mailOf())
  await linesOf(log, 1)
  expect(log.lines[0]).toMatchObject({
    level: "warn",
    message: expect.stringContaining("SMTP_URL"),
    fields: { to: "user1@example.com", subject: "Verifikasi – mail 1" },
  })
  expect(JSON.stringify(log.lines)).not.toContain("token-1")
  expect(readdirSync(fixture.dataDir)).toEqual([])
  await expect.poll(async () => (await fixture.rows()).length).toBe(0)
})

it("a folder that can't be written is tried again", async () => {
  writeFileSync(folder(), "in the way")
  const { send, log } = await fixture.open()
  await send(mailOf())
  await linesOf(log, 1)
  expect(log.lines[0]).toMatchObject({
    level: "warn",
    fields: { attempts: 1, reason: expect.stringMatching(/EEXIST|ENOTDIR/) },
  })
  rmSync(folder())
  fixture.clock.advance(20_000)
  await expect.poll(() => readdirSync(fixture.dataDir), { timeout: 10_000 }).toEqual(["outbox"])
  await expect.poll(() => readdirSync(folder()).length).toBe(1)
})
