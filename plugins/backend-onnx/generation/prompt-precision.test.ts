import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { apartPrecisions } from "../testing/channel-precisions.ts"
import { writeGguf } from "../testing/gguf-writer.ts"
import { tinyPrompt as ids, tinyLlama } from "../testing/tiny-llama.ts"
import { type Ask, openInProcess, type Said } from "./testing/in-process.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-apart-"))
const path = join(root, "tiny.gguf")
writeFileSync(path, writeGguf(tinyLlama(6, { contextTokens: 1024 })))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const answered = 70
const maxTokens = 24
const sampler = {
  temperature: 0,
  topP: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  // so that the tokens of answers are known
  logitBias: [[answered, 100] as const],
}
const asking = (promptIds: Int32Array): Ask => ({
  promptIds,
  sampler,
  maxTokens,
  topLogprobs: 2,
})
/** Tokens with their log-probabilities, of which not a bit may differ. */
const written = ({ events, end }: Said) => {
  expect(end).toBe("done")
  const details = events.flatMap((event) => ("details" in event ? (event.details ?? []) : []))
  expect(details.length).toBeGreaterThan(0)
  return details
}

describe.each(apartPrecisions)("prompts by weights of their own", (precisions) => {
  const open = (more: object) => openInProcess({ path, graphs: join(root, "graphs"), ...more })
  const first = async (more: object) => {
    const engine = await open(more)
    const said = written(await engine.ask({ ...asking(ids(150)), maxTokens: 1 }))
    await engine.close()
    return said
  }

  test("the first token is that of their weights, not of those that answers are written with", async () => {
    const [apart, prompts, answers] = [
      await first(precisions),
      await first({ precision: precisions.promptPrecision }),
      await first({ precision: precisions.precision }),
    ]
    expect(apart).toEqual(prompts)
    expect(apart).not.toEqual(answers)
  })

  test("a second turn is the same, bit by bit, cold and after the first, alone and in company", async () => {
    const warm = await open(precisions)
    const cold = await open(precisions)
    expect(written(await warm.ask(asking(ids(150))))).toHaveLength(maxTokens)
    const answer = new Array<number>(maxTokens).fill(answered)
    const turn = Int32Array.from([...ids(150), ...answer, ...ids(20, 9)])
    const wanted = written(await cold.ask(asking(turn)))
    expect(written(await warm.ask(asking(turn)))).toEqual(wanted)
    expect(written(await warm.ask(asking(turn)))).toEqual(wanted)
    const company = [1, 2, 3, 4, 5].map((n) => cold.ask(asking(ids(40 * n, n))))
    expect(written(await cold.ask(asking(turn)))).toEqual(wanted)
    await Promise.all(company)
    await warm.close()
    await cold.close()
  })
})

test.skipIf(apartPrecisions.length > 0)(
  "a CPU whose sums saturate refuses prompts by weights of their own",
  async () => {
    const more = { precision: "int4", promptPrecision: "int8-channel" } as const
    await expect(openInProcess({ path, graphs: join(root, "graphs"), ...more })).rejects.toThrow(
      "this CPU adds up products of 8 bits with saturation, so it can't run int8-channel",
    )
  },
)
