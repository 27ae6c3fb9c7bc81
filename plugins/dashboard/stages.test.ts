import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const { partsOf } = await webModule("parts/stages.js")

interface Part {
  readonly stage: string
  readonly ms: number
}
const shown = (stages_ms: object, duration_ms: number, first_token_ms: number | null = null) =>
  partsOf({ stages_ms, duration_ms, first_token_ms }).map(({ stage, ms }: Part) => [stage, ms])

describe("the parts of a call's time", () => {
  it("are its stages, and what none of them measured", () => {
    expect(shown({ auth: 1, queue: 2, prefill: 30, decode: 60 }, 100, 35)).toEqual([
      ["auth", 1],
      ["queue", 2],
      ["prefill", 30],
      ["decode", 60],
      ["other", 7],
    ])
  })

  it("count tokenizing once: planning contains it", () => {
    expect(shown({ tokenize: 4, plan: 5, queue: 1 }, 10)).toEqual([
      ["tokenize", 4],
      ["plan", 1],
      ["queue", 1],
      ["other", 4],
    ])
  })

  it("are split at the first token where an engine reports no stages", () => {
    expect(shown({ auth: 1, plan: 9 }, 100, 40)).toEqual([
      ["auth", 1],
      ["plan", 9],
      ["first", 30],
      ["after", 60],
    ])
    expect(shown({ plan: 9 }, 10)).toEqual([
      ["plan", 9],
      ["other", 1],
    ])
  })

  it("are never negative, and come to the whole unless stages overlap", () => {
    const ms = fc.double({ min: 0, max: 1e6, noNaN: true })
    const stages = fc.dictionary(fc.constantFrom("auth", "plan", "tokenize", "queue", "x"), ms)
    fc.assert(
      fc.property(stages, ms, fc.option(ms), (stages_ms, whole, first) => {
        const parts = shown(stages_ms, whole, first) as [string, number][]
        const sum = parts.reduce((all, [, part]) => all + part, 0)
        for (const [, part] of parts) expect(part).toBeGreaterThanOrEqual(0)
        expect(sum).toBeGreaterThanOrEqual(whole * 0.999999)
      }),
    )
  })
})
