import { Effect } from "effect"
import { describe, expect, test } from "vitest"
import { encoderFolder } from "../../plugins/backend-onnx/testing/fixtures.ts"
import { collect, context, openBackend } from "../../plugins/backend-onnx/testing/open-backend.ts"
import { heavyOnCpu, noDevice, testProvider } from "./test-device.ts"

const texts = ["a cat", "the dog sleeps on a warm mat in the long afternoon"]

const vectorsOf = async (
  fixture: ReturnType<typeof openBackend>,
  folder: string,
  options: { readonly precision?: string } = {},
) => {
  try {
    const model = await fixture.open("embed", folder, { options })
    const items = texts.map((text) => ({ type: "text" as const, text }))
    const plan = await Effect.runPromise(
      model.task.plan({ items, truncate: "END" as const }, context()),
    )
    const events = [...(await collect(plan))].sort((a, b) => a.index - b.index)
    const { servedBy, embeddingSpace } = model
    return { vectors: events.map(({ vector }) => vector), servedBy, embeddingSpace }
  } finally {
    await fixture.close()
  }
}

const families = [
  "bert",
  "roberta",
  "xlm-roberta",
  "modernbert",
  "gemma3-embedding",
  "qwen3-embedding",
]

describe.skipIf(noDevice)("embeddings on a device", { timeout: 120_000 }, () => {
  test.each(families)("of '%s' are those of the CPU", async (name) => {
    const { provider, device, log } = testProvider()
    const there = await vectorsOf(openBackend({}, provider), encoderFolder(name))
    const here = await vectorsOf(openBackend(), encoderFolder(name))
    expect(there.servedBy).toBe(`webgpu (${device.name})`)
    expect(there.embeddingSpace).toBe(here.embeddingSpace)
    for (const [i, vector] of there.vectors.entries())
      for (const [at, value] of vector.entries())
        expect(value).toBeCloseTo(here.vectors[i]![at]!, 4)
    expect(heavyOnCpu(log)).toEqual([])
  })

  test("of weights in 8 bits stay on it, too", async () => {
    const { provider, log } = testProvider()
    const options = { precision: "int8" }
    const there = await vectorsOf(openBackend({}, provider), encoderFolder("bert"), options)
    const here = await vectorsOf(openBackend(), encoderFolder("bert"), options)
    // the CPU rounds activations to 8 bits, the GPU does not
    for (const [i, vector] of there.vectors.entries()) {
      const cosine = vector.reduce((sum, value, at) => sum + value * here.vectors[i]![at]!, 0)
      expect(cosine).toBeGreaterThan(0.995)
    }
    expect(heavyOnCpu(log)).toEqual([])
  })

  test("that neither place can make are refused as on the CPU", async () => {
    const { provider } = testProvider()
    const [there, here] = [openBackend({}, provider), openBackend()]
    const wrong = { options: { precision: "int4" } }
    const reason = await there.failure("embed", encoderFolder("bert"), wrong)
    expect(reason).toMatchObject({
      code: "backend_error",
      message: expect.stringContaining("int4"),
    })
    expect(reason).toEqual(await here.failure("embed", encoderFolder("bert"), wrong))
    await there.close()
    await here.close()
  })
})
