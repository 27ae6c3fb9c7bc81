import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { allMetrics, conventions, metricsIn, metricsPage } from "./metrics-page.ts"

test("docs/metrics.md is what the sources say (npm run docs)", () => {
  expect(readFileSync(new URL("./metrics.md", import.meta.url), "utf8")).toBe(metricsPage())
})

test("metrics are found however the call is written", () => {
  const text = `
    const labels = ["model_name", "priority"] as const
    const shared = "of all"
    const a = metrics.gauge("rakit_a", "One.")
    const b = deps.metrics.counter(
      "rakit_b_total",
      \`Two, \${shared}.\`,
      [...labels, "reason"],
    )
    const c = histogram("rakit_c_seconds", "Three.", buckets)
    const d = metrics.histogram("rakit_d", "Four.", [1, 2], ["statement"])`
  expect(metricsIn("a.ts", text).map(({ path: _, ...metric }) => Object.values(metric))).toEqual([
    ["rakit_a", "gauge", "One.", []],
    ["rakit_b_total", "counter", "Two, of all.", ["model_name", "priority", "reason"]],
    ["rakit_c_seconds", "histogram", "Three.", ["model_name", "priority"]],
    ["rakit_d", "histogram", "Four.", ["statement"]],
  ])
})

test("a metric is made at one place, counters end in _total, and only they", () => {
  const all = allMetrics()
  const names = all.map(({ name }) => name)
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  expect(all.filter(({ name, kind }) => (kind === "counter") !== name.endsWith("_total"))).toEqual(
    [],
  )
  expect(names.length).toBeGreaterThan(40)
})

test("labels are of a fixed list: none can hold what a request says", () => {
  const known = new Set([
    ...["model_name", "priority", "finished_reason", "endpoint", "method", "status", "code"],
    ...["port", "operation", "fault", "upstream", "fallback"],
    ...["state", "outcome", "job", "statement", "result", "stage", "category"],
  ])
  expect(allMetrics().flatMap(({ labels }) => labels.filter((label) => !known.has(label)))).toEqual(
    [],
  )
})

test("the conventions name metrics that there are", () => {
  const names = allMetrics().map(({ name }) => name)
  expect(Object.keys(conventions).filter((name) => !names.includes(name))).toEqual([])
})
