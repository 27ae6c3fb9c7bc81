import { Effect } from "effect"
import { describe, expect, test } from "vitest"
import { encoderFolder } from "../../plugins/backend-onnx/testing/fixtures.ts"
import { collect, context, openBackend } from "../../plugins/backend-onnx/testing/open-backend.ts"
import { heavyOnCpu, noDevice, testProvider } from "./test-device.ts"

const request = { query: "a cat", documents: ["the cat sleeps", "a dog on a mat in the sun"] }

const scoresOf = async (fixture: ReturnType<typeof openBackend>, folder: string) => {
  try {
    const model = await fixture.open("rerank", folder)
    const plan = await Effect.runPromise(model.task.plan(request, context()))
    const scores: number[] = []
    for (const { index, score } of await collect(plan)) scores[index] = score
    return { scores, servedBy: model.servedBy }
  } finally {
    await fixture.close()
  }
}

describe.skipIf(noDevice)("reranking on a device", { timeout: 120_000 }, () => {
  test.each(["bert-classifier", "modernbert-classifier", "xlm-roberta-classifier"])(
    "by '%s' is that of the CPU",
    async (name) => {
      const { provider, device, log } = testProvider()
      const there = await scoresOf(openBackend({}, provider), encoderFolder(name))
      const here = await scoresOf(openBackend(), encoderFolder(name))
      expect(there.servedBy).toBe(`webgpu (${device.name})`)
      expect(there.scores).toHaveLength(2)
      for (const [i, score] of there.scores.entries()) expect(score).toBeCloseTo(here.scores[i]!, 4)
      expect(heavyOnCpu(log)).toEqual([])
    },
  )
})
