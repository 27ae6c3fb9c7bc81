import { describe, expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const { metricSum, workRows } = await webModule("server-work.js")
const { csvOf } = await webModule("csv.js")
const { pricesCsv } = await webModule("views/admin-prices.js")

describe("background work", () => {
  const metric = (name: string, value: number, labels: Record<string, string> = {}) => ({
    ...{ name: `rakit_${name}`, value, labels },
  })

  it("is of what the deployment has: without any there are no rows", () => {
    expect(workRows([])).toEqual([])
    expect(metricSum([metric("other", 1)], "rakit_batches")).toBeUndefined()
  })

  it("has batches, lines and documents by their state, and each job", () => {
    const metrics = [
      metric("batches", 2, { status: "validating" }),
      metric("batches", 1, { status: "in_progress" }),
      metric("batch_lines_waiting", 40),
      metric("batch_lines_total", 3, { model_name: "m", outcome: "failed" }),
      metric("batch_lines_total", 90, { model_name: "m", outcome: "completed" }),
      metric("ingest_files", 5, { state: "waiting" }),
      metric("ingest_files", 1, { state: "extracting" }),
      metric("ingest_files", 2, { state: "embedding" }),
      metric("ingest_files_total", 7, { outcome: "processed" }),
      metric("ingest_files_total", 1, { outcome: "file_unreadable" }),
      metric("ingest_files_total", 2, { outcome: "file_empty" }),
      ...["waiting", "delayed", "running", "dead"].map((state, at) =>
        metric("queue_jobs", at, { job: "webhook", state }),
      ),
      metric("queue_jobs", 9, { job: "mail", state: "waiting" }),
    ]
    expect(workRows(metrics)).toEqual([
      { id: "batches", waiting: 2, running: 1 },
      { id: "lines", waiting: 40, failed: 3 },
      { id: "documents", waiting: 5, running: 3, failed: 3 },
      { ...{ id: "mail", job: "mail", waiting: 9 }, later: undefined, running: undefined },
      { ...{ id: "webhook", job: "webhook" }, waiting: 0, later: 1, running: 2, failed: 3 },
    ])
  })
})

describe("CSV", () => {
  it("quotes what would break a cell, and disarms formulas", () => {
    expect(csvOf([["a", 'b,"c"', "=1+1", undefined]])).toBe(`a,"b,""c""",'=1+1,\r\n`)
  })

  it("of prices has a line for each, exact, and one for a model that costs nothing", () => {
    const price = { kind: "input", per: "1000000 tokens", configured_idr: "0.1", idr: "0.1" }
    const models = [
      {
        ...{ id: "m", task: "chat", origin: "config" },
        adapters: [{ id: "m:a" }, { id: "m:b" }],
        prices: [{ ...price, batch_idr: "0.05" }],
      },
      { id: "free", task: "embed", origin: "pack", adapters: [], prices: [] },
    ]
    expect(pricesCsv(models).split("\r\n")).toEqual([
      "model,task,origin,adapters,kind,per,configured_idr,idr,batch_idr",
      "m,chat,config,m:a m:b,input,1000000 tokens,0.1,0.1,0.05",
      "free,embed,pack,,free,,,,",
      "",
    ])
  })
})
