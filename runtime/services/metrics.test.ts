import { expect, test } from "vitest"
import { makeMetrics } from "./metrics.ts"

test("counters, gauges and histograms in the Prometheus text format, beside the process's own", async () => {
  const metrics = makeMetrics()
  metrics.counter("rakit_calls_total", "Calls.", ["endpoint"]).add(2, { endpoint: "chat" })
  metrics.counter("rakit_calls_total", "Calls.", ["endpoint"]).add(1, { endpoint: "chat" })
  const open = metrics.gauge("rakit_streams_open", "Streams.")
  open.add(1)
  open.add(1)
  open.add(-1)
  metrics.histogram("rakit_wait_seconds", "Waits.", [0.1, 1]).observe(0.5)
  const text = await metrics.expose()
  expect(text).toContain('rakit_calls_total{endpoint="chat"} 3')
  expect(text).toContain("rakit_streams_open 1")
  expect(text).toContain('rakit_wait_seconds_bucket{le="1"} 1')
  expect(text).toContain("process_resident_memory_bytes")
  expect(metrics.contentType).toMatch(/^text\/plain/)
})

test("two registries don't meet", async () => {
  makeMetrics().counter("rakit_a_total", "A.").add(1)
  expect(await makeMetrics().expose()).not.toContain("rakit_a_total")
})
