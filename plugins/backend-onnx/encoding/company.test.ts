import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, describe, expect, test } from "vitest"
import { seededRandom } from "../sampling/random.ts"
import { encoderFolder, towerFolder } from "../testing/fixtures.ts"
import { openEncoder, outputsOf } from "../testing/open-encoder.ts"
import type { EmbedJobEvent, EncoderInput } from "./embed-job.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-company-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const dualEncoders = ["clip", "siglip", "siglip2"].map(towerFolder)
const folders = [...readdirSync(encoderFolder("")).map(encoderFolder), ...dualEncoders].map(
  (path) => [path.split("/").at(-1)!, path] as const,
)

type Engine = Awaited<ReturnType<typeof openEncoder>>

/** A text of random tokens, or for a classifier a pair; most are short, and share steps. */
const inputOf = (
  { info: { vocabulary, maxTokens, output } }: Engine,
  random: () => number,
): EncoderInput => {
  const tokens = Math.max(2, Math.round(random() ** 3 * Math.min(maxTokens, 96)))
  const ids = Int32Array.from({ length: tokens }, () => Math.floor(random() * vocabulary))
  return output === "score" ? { ids, secondFrom: 1 + Math.floor(random() * (tokens - 1)) } : ids
}

/** What an encoder makes of the texts of several requests that run at the same time. */
const inCompany = async (
  { start, runner }: Engine,
  requests: readonly (readonly EncoderInput[])[],
): Promise<readonly (readonly Float32Array[])[]> => {
  const vectors = requests.map((): Float32Array[] => [])
  let running = requests.map((texts, id) => {
    const job = start({ texts }, (event: EmbedJobEvent) => {
      if (event.type === "vector") vectors[id]![event.index] = event.vector
    })
    return { id, account: "a", priority: "realtime", job } as const
  })
  while (running.length) {
    const ended = await runner.step(running, ([first]) => first!)
    for (const { cause } of ended) if (cause) throw cause
    running = running.filter((one) => !ended.some(({ of }) => of === one))
  }
  return vectors
}

const sizes = fc.array(fc.integer({ min: 1, max: 16 }), { minLength: 2, maxLength: 3 })

describe.each(folders)("the tiny %s", (_, path) => {
  test.each(["fp32", "int8"] as const)(
    "gives each text its vector alone, in any company, in %s",
    async (precision) => {
      const engine = await openEncoder(path, join(root, "graphs"), { precision })
      const hold = async (sizes: readonly number[], seed: number) => {
        const random = seededRandom(seed)
        const requests = sizes.map((size) =>
          Array.from({ length: size }, () => inputOf(engine, random)),
        )
        const together = await inCompany(engine, requests)
        for (const [i, inputs] of requests.entries())
          for (const [j, input] of inputs.entries()) {
            const [alone] = await outputsOf(engine, [input])
            const gap = alone!.reduce(
              (most, value, at) => Math.max(most, Math.abs(value - together[i]![j]![at]!)),
              0,
            )
            expect(gap).toBeLessThan(1e-5)
          }
      }
      await fc.assert(fc.asyncProperty(sizes, fc.nat(), hold), { numRuns: 4 })
      await engine.close()
    },
  )
})
