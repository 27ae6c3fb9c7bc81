import { Effect } from "effect"
import { describe, expect, test } from "vitest"
import { encoderFolder } from "../../plugins/backend-onnx/testing/fixtures.ts"
import { collect, context, openBackend } from "../../plugins/backend-onnx/testing/open-backend.ts"
import { noDevice, testProvider } from "./software-device.ts"

const texts = ["a cat", "the dog sleeps on a warm mat in the long afternoon"]

const vectorsOf = async (fixture: ReturnType<typeof openBackend>, folder: string) => {
  try {
    const model = await fixture.open("embed", folder)
    const items = texts.map((text) => ({ type: "text" as const, text }))
    const plan = await Effect.runPromise(
      model.task.plan({ items, truncate: "END" as const }, context()),
    )
    const events = [...(await collect(plan))].sort((a, b) => a.index - b.index)
    return { vectors: events.map(({ vector }) => vector), servedBy: model.servedBy }
  } finally {
    await fixture.close()
  }
}

describe.skipIf(noDevice)("embeddings on a device", () => {
  test.each(["bert", "roberta", "modernbert", "gemma3-embedding", "qwen3-embedding"])(
    "of '%s' are those of the CPU",
    async (name) => {
      const { provider, device } = testProvider()
      const there = await vectorsOf(openBackend({}, provider), encoderFolder(name))
      const here = await vectorsOf(openBackend(), encoderFolder(name))
      expect(there.servedBy).toBe(`webgpu (${device.name})`)
      for (const [i, vector] of there.vectors.entries())
        for (const [at, value] of vector.entries())
          expect(value).toBeCloseTo(here.vectors[i]![at]!, 4)
    },
  )
})
