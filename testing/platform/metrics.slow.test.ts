import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { seriesOf } from "../prometheus-text.ts"
import { type ObservedServer, openObservedServer, root } from "./observed-server.ts"

/** Exact counts of what real clients asked. */
let server: ObservedServer
beforeAll(async () => {
  server = await openObservedServer()
}, 120_000)
afterAll(() => server?.close())

describe("/metrics", () => {
  it("needs the token", async () => {
    expect((await fetch(`${server.platform.url}/metrics`)).status).toBe(401)
  })

  it("has the exact counts of what was asked", async () => {
    const series = seriesOf(await server.scrape())
    const of = (name: string, model: string, more = "", priority = "realtime") =>
      series.get(
        `${name}{${[...(more ? [more] : []), `model_name="${model}"`, `priority="${priority}"`].sort().join(",")}}`,
      )
    const ended = (model: string, reason: string, priority?: string) =>
      of("rakit_request_success_total", model, `finished_reason="${reason}"`, priority)
    expect([ended("svc-lyt", "stop"), ended("svc-lyt", "length")]).toEqual([2, 1])
    expect([ended("svc-omni", "abort"), ended("svc-omni", "stop")]).toEqual([1, 0])
    expect([ended("svc-embed", "stop"), ended("svc-rerank", "stop")]).toEqual([1, 1])
    expect(ended("svc-lyt", "stop", "batch")).toBe(3)
    // a message has a token of its own, each word is one: 4 + 5 + 4 in, 3 + 2 + 3 out
    expect(of("rakit_prompt_tokens_total", "svc-lyt")).toBe(13)
    expect(of("rakit_generation_tokens_total", "svc-lyt")).toBe(8)
    expect(of("rakit_prompt_tokens_total", "svc-lyt", "", "batch")).toBe(3 + 2 + 4)
    expect(of("rakit_generation_tokens_total", "svc-lyt", "", "batch")).toBe(2 + 1 + 3)
    for (const name of [
      "rakit_time_to_first_token_seconds_count",
      "rakit_request_time_per_output_token_seconds_count",
      "rakit_e2e_request_latency_seconds_count",
      "rakit_request_queue_time_seconds_count",
      "rakit_request_prefill_time_seconds_count",
      "rakit_request_decode_time_seconds_count",
    ])
      expect([name, of(name, "svc-lyt")]).toEqual([name, 3])
    expect(of("rakit_time_to_first_token_seconds_count", "svc-lyt", "", "batch")).toBe(3)
    for (const state of ["running", "waiting"])
      for (const model of ["svc-lyt", "svc-omni", "svc-embed", "svc-rerank"])
        expect(of(`rakit_num_requests_${state}`, model)).toBe(0)
  })

  it("counts refusals by model and code, and names no model that a client made up", async () => {
    const text = await server.scrape()
    const series = seriesOf(text)
    const failed = (code: string, model: string) =>
      series.get(
        `rakit_request_failure_total{code="${code}",endpoint="chat.completions",model_name="${model}"}`,
      )
    expect(failed("invalid_request_error", "svc-lyt")).toBe(1)
    expect(failed("model_not_found", "")).toBe(1)
    expect(failed("client_closed", "svc-omni")).toBe(1)
    expect(text).not.toContain("made-up-by-a-client")
    expect(text).not.toContain(server.platform.credentials.api_key)
  })

  it("counts the lines of batches, and what is not finished", async () => {
    const series = seriesOf(await server.scrape())
    const lines = (outcome: string) =>
      series.get(`rakit_batch_lines_total{model_name="svc-lyt",outcome="${outcome}"}`)
    expect([lines("completed"), lines("failed")]).toEqual([3, 1])
    await vi.waitFor(
      async () => {
        const now = seriesOf(await server.scrape())
        expect(now.get("rakit_batch_lines_waiting{}")).toBe(0)
        expect(now.get('rakit_batches{status="in_progress"}')).toBe(0)
      },
      { timeout: 15_000, interval: 200 },
    )
  })

  it("shows states of models, the pool of the database, and the process", async () => {
    const series = seriesOf(await server.scrape())
    expect(series.get('rakit_model_state{model_name="svc-lyt",state="ready"}')).toBe(1)
    expect(series.get('rakit_model_state{model_name="svc-lyt",state="failed"}')).toBe(0)
    expect(series.get("rakit_db_client_connection_max{}")).toBe(20)
    expect(series.get('rakit_db_client_connection_count{state="idle"}')).toBeGreaterThan(0)
    expect(series.get("rakit_http_body_bytes{}")).toBe(0)
    expect(series.get("process_resident_memory_bytes{}")).toBeGreaterThan(1e7)
    expect(series.has("nodejs_eventloop_lag_p99_seconds{}")).toBe(true)
  })

  it("has what the board asks for, and what the documentation lists", async () => {
    const text = await server.scrape()
    const known = new Set([...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name))
    const base = (name: string) =>
      known.has(name) ? name : name.replace(/_(bucket|sum|count)$/, "")
    const namesIn = (text: string) => [
      ...new Set(text.match(/\b(rakit|process|nodejs)_\w+/g)?.map(base)),
    ]
    const board = JSON.parse(readFileSync(join(root, "config/grafana.json"), "utf8"))
    const expressions = board.panels.flatMap((panel: { targets?: { expr: string }[] }) =>
      (panel.targets ?? []).map(({ expr }) => expr),
    )
    expect(expressions.length).toBeGreaterThan(30)
    expect(namesIn(expressions.join("\n")).filter((name) => !known.has(name))).toEqual([])
    const listed = [
      ...readFileSync(join(root, "docs/metrics.md"), "utf8").matchAll(/^\| `(rakit_\w+)`/gm),
    ].map(([, name]) => name)
    expect(listed.length).toBeGreaterThan(40)
    expect(listed.filter((name) => !known.has(name))).toEqual([])
    const shown = new Set(namesIn(expressions.join("\n")))
    const own = [...known].filter((name) => name?.startsWith("rakit_"))
    expect(own.filter((name) => !listed.includes(name))).toEqual([])
    expect(shown.size).toBeGreaterThan(35)
  })
})
