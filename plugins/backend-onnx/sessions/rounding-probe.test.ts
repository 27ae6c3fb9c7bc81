import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { openModelSource } from "../architectures/model-source.ts"
import { graphFile } from "../onnx/graph-cache.ts"
import { openSession } from "../onnx/onnx-session.ts"
import { tinyLlamaFile } from "../testing/tiny-llama.ts"
import { BuiltSession } from "./built-session.ts"
import type { DecoderSession, ForwardPass } from "./decoder.ts"
import { openDecoder } from "./open-decoder.ts"
import { probeRounding, runProbe } from "./rounding-probe.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-probe-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const path = join(root, "tiny.gguf")
writeFileSync(path, tinyLlamaFile(8))
const spec = { path, graphs: join(root, "graphs"), precision: "int4", threads: 1 } as const

const shape = { layers: 1, kvHeads: 1, headSize: 2, vocabulary: 64, contextTokens: 128 }

/** A model whose numbers depend on the token and the sum of those before it; `noise` spoils rows. */
const fake =
  (noise: (pass: ForwardPass, lonelyTwice: boolean) => number) =>
  (lonelyTwice: boolean): DecoderSession => ({
    shape,
    isInvariant: false,
    forward: async (pass) => {
      const { rows, count, ids, pastLens, past, capacity, logitsAt } = pass
      const fresh = new Float32Array(2 * rows * count * 2)
      for (let row = 0; row < rows; row++) {
        let sum = 0
        for (let at = 0; at < pastLens[row]!; at++) sum += past[0]![(row * capacity + at) * 2]!
        for (let i = 0; i < count; i++) {
          const own = ids[row * count + i]! / 64
          sum += own
          for (let array = 0; array < 2; array++)
            fresh.set([own, sum], ((array * rows + row) * count + i) * 2)
        }
      }
      const logits = new Float32Array(logitsAt.length * shape.vocabulary).fill(1)
      for (const [i, at] of logitsAt.entries())
        logits[i * shape.vocabulary] = fresh[at * 2 + 1]! + noise(pass, lonelyTwice)
      return { logits, fresh }
    },
    close: async () => {},
  })

test("finds out how a row that is alone must be computed, and whether that is enough", async () => {
  const lonely = ({ rows, count }: ForwardPass) => rows * count === 1
  expect(await probeRounding(fake(() => 0))).toEqual({ lonelyTwice: false, isInvariant: true })
  expect(
    await probeRounding(fake((pass, lonelyTwice) => (lonely(pass) && !lonelyTwice ? 1e-4 : 0))),
  ).toEqual({ lonelyTwice: true, isInvariant: true })
  expect(await probeRounding(fake((pass) => (lonely(pass) ? 1e-4 : 0)))).toEqual({
    lonelyTwice: true,
    isInvariant: false,
  })
  expect(await probeRounding(fake(({ rows }) => (rows === 5 ? 1e-4 : 0)))).toEqual({
    lonelyTwice: false,
    isInvariant: false,
  })
})

test("a row that is computed twice has the bits that it has once in company", async () => {
  const { folder, session: decoder } = await openDecoder(spec, () => {})
  await decoder.close()
  const source = openModelSource(path)
  const session = await openSession(join(folder, graphFile), 1)
  const embed = (ids: ArrayLike<number>) => source.weights.embed(ids)
  const rounding = await runProbe(folder, 1, source.config, embed)
  expect(rounding.isInvariant).toBe(true)
  const open = (lonelyTwice: boolean) =>
    new BuiltSession(session, {
      shape: source.config,
      embed,
      rounding: { lonelyTwice, isInvariant: true },
    })
  // the whole model, though lonely rows be computed twice where that is not needed
  expect(await probeRounding(() => open(true))).toEqual({ lonelyTwice: false, isInvariant: true })

  const twice = open(true)
  // a lone token behind a picture that the cache holds, and a lone row of a picture
  const logitsOf = (id: number, embedded?: ForwardPass["embedded"]) =>
    twice.forward({
      rows: 1,
      count: 1,
      ids: [id],
      pastLens: [0],
      ...twice.newStore(64).rowsFrom(0, 1),
      capacity: 64,
      logitsAt: [0],
      ...(embedded && { embedded }),
    })
  const logits = (await logitsOf(5)).logits.slice()
  expect((await logitsOf(5, new Map())).logits).toEqual(logits)
  expect((await logitsOf(-7, new Map([[0, embed([5])]]))).logits).toEqual(logits)
  await session.release()
  source.close()
})
