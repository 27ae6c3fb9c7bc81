import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { CachedDecoder } from "../generation/cached-decoder.ts"
import { openDecoder } from "../sessions/open-decoder.ts"
import { writeGguf } from "../testing/gguf-writer.ts"
import { LlamaReference } from "../testing/llama-reference.ts"
import { tinyLlama } from "../testing/tiny-llama.ts"
import type { Precision } from "./linear.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-llama-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const content = tinyLlama(3)
const path = join(root, "tiny.gguf")
writeFileSync(path, writeGguf(content))
const tokens = [0, 40, 41, 200, 7, 7, 99, 120, 260, 1, 13, 55, 60, 61, 62, 8]

const open = async (precision: Precision) => {
  const { session } = await openDecoder(
    { path, graphs: join(root, "graphs"), precision, threads: 1 },
    () => {},
  )
  const llama = new CachedDecoder(session)
  return {
    newCache: (tokens: number) => llama.newCache(tokens),
    forward: (...args: Parameters<CachedDecoder["forward"]>) => llama.forward(...args),
    close: () => session.close(),
  }
}
type Opened = Awaited<ReturnType<typeof open>>

/** Logits after each token, computed in chunks of these sizes. */
const logitsIn = async (
  session: Opened,
  sizes: readonly number[],
): Promise<readonly (readonly number[])[]> => {
  const cache = session.newCache(1)
  const out: number[][] = []
  for (const size of sizes)
    out.push([
      ...(await session.forward(cache, tokens.slice(cache.length, cache.length + size), true)),
    ])
  return out
}

const largestGap = (a: readonly number[], b: readonly number[]) =>
  a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0)
const argmax = (a: readonly number[]) => a.indexOf(Math.max(...a))

const reference = new LlamaReference(content)
const wanted = tokens.map((token) => reference.next(token))

test("in fp32 the graph returns the logits of an independent implementation, token by token and in chunks", async () => {
  const session = await open("fp32")
  const single = await logitsIn(
    session,
    tokens.map(() => 1),
  )
  for (const [i, logits] of single.entries())
    expect(largestGap(logits, wanted[i]!)).toBeLessThan(1e-4)
  for (const sizes of [[16], [5, 11], [1, 14, 1]]) {
    const last = (await logitsIn(session, sizes)).at(-1)!
    expect(largestGap(last, wanted.at(-1)!)).toBeLessThan(1e-4)
  }
  await session.close()
})

test("in int8 it stays close", async () => {
  const session = await open("int8")
  const single = await logitsIn(
    session,
    tokens.map(() => 1),
  )
  const spread = Math.max(...wanted.at(-1)!) - Math.min(...wanted.at(-1)!)
  for (const [i, logits] of single.entries())
    expect(largestGap(logits, wanted[i]!)).toBeLessThan(spread * 0.05)
  expect(
    single.filter((logits, i) => argmax(logits) === argmax(wanted[i]!)).length,
  ).toBeGreaterThan(tokens.length * 0.8)
  await session.close()
})

test("the cache grows and rewinds without a trace", async () => {
  const session = await open("fp32")
  const cache = session.newCache(1)
  await session.forward(cache, new Int32Array(100).fill(50), false)
  await session.forward(cache, new Int32Array(60).fill(51), false)
  expect(cache.capacity).toBe(256)
  cache.rewind(100)
  const again = [...(await session.forward(cache, [52], true))]
  const fresh = session.newCache(200)
  await session.forward(fresh, new Int32Array(100).fill(50), false)
  expect(largestGap(again, [...(await session.forward(fresh, [52], true))])).toBeLessThan(1e-4)
  await session.close()
})
