import { describe, expect, test } from "vitest"
import { fixtureFolder } from "../../plugins/backend-onnx/testing/fixtures.ts"
import {
  answer,
  chatRequest,
  openBackend,
} from "../../plugins/backend-onnx/testing/open-backend.ts"
import { heavyOnCpu, noDevice, testProvider } from "./test-device.ts"

const models = [
  ["llama", "fp32"],
  ["llama", "int8"],
  ["llama", "int4"],
  ["qwen3", "int4"],
] as const
/** By how much log probabilities may differ: the CPU rounds activations to 8 bits beside weights. */
const tolerances = { fp32: 1e-3, int8: 0.2, int4: 0.2 }

const answered = async (
  fixture: ReturnType<typeof openBackend>,
  path: string,
  precision: string,
) => {
  const model = await fixture.open("chat", path, { options: { precision } })
  const request = chatRequest("The cat sat on the mat and", { maxTokens: 12, topLogprobs: 0 })
  const { events } = await answer(model, request)
  const tokens = events.flatMap((event) => (event.type === "text" ? (event.logprobs ?? []) : []))
  const { servedBy } = model
  await fixture.close()
  return { servedBy, tokens }
}

describe.skipIf(noDevice)("chat on a device", { timeout: 180_000 }, () => {
  test.each(models)("of '%s' in %s answers as on the CPU", async (name, precision) => {
    const { provider, device, log } = testProvider()
    const there = await answered(openBackend({}, provider), fixtureFolder(name), precision)
    const here = await answered(openBackend(), fixtureFolder(name), precision)
    expect(there.servedBy).toBe(`webgpu (${device.name})`)
    expect(heavyOnCpu(log)).toEqual([])
    expect(there.tokens.length).toBeGreaterThan(0)
    for (const [i, { logprob, bytes }] of there.tokens.entries()) {
      const other = here.tokens[i]!
      expect(Math.abs(logprob - other.logprob)).toBeLessThan(tolerances[precision])
      // of random weights in few bits, the next tokens may be as likely as each other
      if (precision !== "fp32" && !Buffer.from(bytes).equals(Buffer.from(other.bytes))) break
      expect(bytes).toEqual(other.bytes)
    }
  })
})
