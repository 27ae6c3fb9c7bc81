import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterEach, beforeEach, expect, it } from "vitest"
import { credentialsFile } from "./credentials-file.ts"

let dir: string
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "rakit-credentials-"))
})
afterEach(() => rm(dir, { recursive: true, force: true }))
const credentials = {
  base_url: "http://127.0.0.1:8080/v1",
  email: "a@b.c",
  password: "12345678",
  api_key: "svc_live_x",
}

it("is readable by its owner only, and whole", async () => {
  const file = credentialsFile(join(dir, "not", "there", "yet"))
  await Effect.runPromise(file.write(credentials))
  expect((await stat(file.path)).mode & 0o777).toBe(0o600)
  expect(JSON.parse(await readFile(file.path, "utf8"))).toEqual(credentials)
  expect(await Effect.runPromise(file.read)).toEqual(credentials)
})

it("replaces a looser file by a private one, and leaves no draft", async () => {
  const file = credentialsFile(dir)
  await writeFile(file.path, "{}", { mode: 0o644 })
  await Effect.runPromise(file.write(credentials))
  expect((await stat(file.path)).mode & 0o777).toBe(0o600)
  expect(await readdir(dir)).toEqual(["credentials.json"])
})

it("reads nothing from a file that is missing or broken", async () => {
  const file = credentialsFile(dir)
  for (const text of [undefined, "", "{", "[]", '{"base_url": 5}']) {
    if (text !== undefined) await writeFile(file.path, text)
    expect(await Effect.runPromise(file.read)).toBeUndefined()
  }
})

it("says where it could not write, without what", async () => {
  const file = credentialsFile(dir)
  await mkdir(file.path)
  const error = await Effect.runPromise(Effect.flip(file.write(credentials)))
  expect(error.message).toContain(file.path)
  expect(error.message).toContain("EISDIR")
  expect(error.message).not.toContain("12345678")
  expect(await readdir(dir)).toEqual(["credentials.json"])
})
