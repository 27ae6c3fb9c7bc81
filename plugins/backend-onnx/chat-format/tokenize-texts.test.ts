import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, expect, test } from "vitest"
import type { Workers } from "../../../core/services/workers.ts"
import { fakeLog, fakeWorkers } from "../../../testing/index.ts"
import { encoderFolder } from "../testing/fixtures.ts"
import type { EmbedTextsRequest } from "./embed-texts.ts"
import { makeTokenizeTexts } from "./tokenize-texts.ts"

const small = encoderFolder("bert-classifier")
const large = mkdtempSync(join(tmpdir(), "rakit-tokenizer-"))
cpSync(small, large, { recursive: true })
const file = join(large, "tokenizer.json")
writeFileSync(file, readFileSync(file, "utf8") + " ".repeat(1_000_000))
afterAll(() => rmSync(large, { recursive: true, force: true }))

const request = (text: string | Int32Array): EmbedTextsRequest => ({
  texts: [text],
  instruction: "",
  truncate: "END",
  maxTokens: 4_096,
  window: 64,
})

/** What a folder's tokenizer returns, and how many jobs the pool had. */
const tokenized = async (folder: string, ...requests: readonly EmbedTextsRequest[]) => {
  const pool = fakeWorkers()
  let jobs = 0
  const run: Workers["run"] = (...job) => {
    jobs++
    return pool.run(...job)
  }
  const log = fakeLog()
  const all = makeTokenizeTexts({ folder, workers: { run }, log })(requests)
  const exit = await Effect.runPromise(Effect.result(all))
  return { exit, jobs, log }
}

test("one short text is tokenized without the pool, and to the same tokens", async () => {
  const here = await tokenized(small, request("a river of the sea"))
  const there = await tokenized(large, request("a river of the sea"))
  expect([here.jobs, there.jobs]).toEqual([0, 1])
  expect(here.exit).toEqual(there.exit)
  expect(here.exit).toMatchObject({ success: [{ texts: [{ truncated: false }] }] })
})

test("what is long, or many, is the pool's", async () => {
  expect((await tokenized(small, request("sea ".repeat(512)))).jobs).toBe(0)
  expect((await tokenized(small, request(`${"sea ".repeat(512)}a`))).jobs).toBe(1)
  expect((await tokenized(small, request(new Int32Array(2_049)))).jobs).toBe(1)
  expect((await tokenized(small, request("a"), request("sea"))).jobs).toBe(1)
  const described = { ...request("sea"), instruction: "river ".repeat(400) }
  expect((await tokenized(small, described)).jobs).toBe(1)
})

test("a text that can't be tokenized is an error in the log", async () => {
  const { exit, log } = await tokenized(small, request({} as string))
  expect(exit).toMatchObject({ failure: { code: "backend_error" } })
  expect(log.lines).toMatchObject([{ level: "error", fields: { job: "embed-texts-job" } }])
})
