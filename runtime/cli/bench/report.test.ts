import { expect, it } from "vitest"
import type { Load } from "./load.ts"
import { chart, figuresOf, percentile, reportText } from "./report.ts"

const load: Load = {
  samples: Array.from({ length: 20 }, (_, n) => ({
    firstMs: 100 + n,
    wholeMs: 1_100 + n,
    promptTokens: 12,
    tokens: 101,
  })),
  failures: new Map([["429 Too many requests.", 2]]),
  seconds: 10,
}

it("percentiles are those of the nearest rank", () => {
  expect([0.5, 0.95, 1].map((share) => percentile([4, 1, 3, 2], share))).toEqual([2, 4, 4])
  expect(percentile([], 0.5)).toBe(0)
})

it("figures are sums, rates and times in ms", () => {
  expect(figuresOf(load)).toEqual({
    requests: 20,
    failed: 2,
    seconds: 10,
    requests_per_second: 2,
    prompt_tokens: 240,
    tokens: 2_020,
    tokens_per_second: 202,
    first_token_ms: { p50: 109, p95: 118 },
    whole_ms: { p50: 1_109, p95: 1_118 },
    between_tokens_ms: { p50: 10, p95: 10 },
  })
})

it("the report has a table, a chart and the reasons of failures", () => {
  const text = reportText(load)
  expect(text).toContain("20 requests in 10 s, 2 failed: 202 tokens/s, 2 requests/s")
  expect(text).toMatch(/^first token +109 ms +118 ms$/m)
  expect(text).toContain("2 x 429 Too many requests.")
  expect(Math.max(...text.split("\n").map(({ length }) => length))).toBeLessThanOrEqual(100)
})

it("the chart counts every value once", () => {
  const counts = chart([1, 1, 2, 50, 100])
    .trimEnd()
    .split("\n")
    .map((line) => Number(line.split(" ").at(-1)))
  expect(counts.reduce((sum, n) => sum + n, 0)).toBe(5)
  expect(chart([])).toBe("")
})

it("what a server says can't steer the terminal, nor fill it", () => {
  const reason = `500 \u001b]0;owned\u0007\u009b2J\u202e\r\n${"x".repeat(10_000)}`
  const text = reportText({ ...load, failures: new Map([[reason, 1]]) })
  expect(text.replaceAll("\n", "")).not.toMatch(/\p{C}/u)
  expect(text).toContain("1 x 500  ]0;owned 2J x")
  expect(text.length).toBeLessThan(2_000)
})
