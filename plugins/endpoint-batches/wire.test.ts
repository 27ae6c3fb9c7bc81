import { Effect, Result, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { decodeBody } from "../../core/index.ts"
import type { BatchRow, BatchStatus } from "./tables.ts"
import { Batch, batchObject, CreateBatch, eventData } from "./wire.ts"

const at = (seconds: number) => new Date(seconds * 1000 + 999)

const row = (more: Partial<BatchRow> = {}): BatchRow => ({
  id: "batch-1",
  seq: 1n,
  account: "acct_1",
  mode: "live",
  key_id: "key_1",
  endpoint: "/v1/rerank",
  status: "validating",
  input_file_id: "file-1",
  output_file_id: null,
  error_file_id: null,
  metadata: null,
  errors: null,
  total: 3,
  completed: 1,
  failed: 1,
  cost_micros: 1_250_001n,
  epoch: 0,
  lease_until: null,
  done_through: 0,
  done_offset: 0n,
  created_at: at(100),
  in_progress_at: null,
  ended_at: null,
  deadline_at: at(86_500),
  expires_at: at(2_592_100),
  ...more,
})

describe("a batch", () => {
  it("shows every field of the contract from its first moment", () => {
    expect(batchObject(row())).toEqual({
      id: "batch-1",
      object: "batch",
      endpoint: "/v1/rerank",
      input_file_id: "file-1",
      output_file_id: null,
      error_file_id: null,
      completion_window: "24h",
      status: "validating",
      request_counts: { total: 3, completed: 1, failed: 1 },
      total_cost_idr: 1.250001,
      created_at: 100,
      in_progress_at: null,
      completed_at: null,
      failed_at: null,
      cancelled_at: null,
      expired_at: null,
      expires_at: 2_592_100,
      metadata: {},
      errors: null,
    })
  })

  it.each([
    "completed",
    "failed",
    "cancelled",
    "expired",
  ] as const satisfies readonly BatchStatus[])(
    "that is %s shows the time of that end only",
    (status) => {
      const shown: Record<string, unknown> = batchObject(
        row({ status, in_progress_at: at(105), ended_at: at(200) }),
      )
      const ends = ["completed_at", "failed_at", "cancelled_at", "expired_at"].filter(
        (name) => shown[name] !== null,
      )
      expect([ends, shown[`${status}_at`], shown.in_progress_at]).toEqual([
        [`${status}_at`],
        200,
        105,
      ])
      expect(Result.isSuccess(Schema.decodeUnknownResult(Batch)(shown))).toBe(true)
    },
  )

  it("tells webhooks its errors where it failed", () => {
    const errors = [{ code: "invalid_json" as const, message: "not JSON", line: 2, param: null }]
    const data = {
      id: "batch-1",
      status: "failed",
      endpoint: "/v1/rerank",
      request_counts: { total: 3, completed: 1, failed: 1 },
      total_cost_idr: 1.250001,
    }
    expect(eventData(row({ status: "failed", errors }))).toEqual({
      ...data,
      errors: { object: "list", data: errors },
    })
    expect(eventData(row({ status: "completed" }))).toEqual({ ...data, status: "completed" })
  })
})

const asked = { input_file_id: "file-1", endpoint: "/v1/rerank" }
const many = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, "v"]))

describe("the body of a creation", () => {
  it.each<[string, object]>([
    ["the least", {}],
    ["a window", { completion_window: "24h" }],
    ["nulls", { completion_window: null, metadata: null }],
    ["no tags", { metadata: {} }],
    ["16 tags", { metadata: many(16) }],
    ["long tags", { metadata: { ["ж".repeat(64)]: "🙂".repeat(512), "a b": "" } }],
    ["unknown fields", { output_expires_after: { anchor: "created_at", seconds: 3600 } }],
  ])("may have %s", async (_, more) => {
    expect(await Effect.runPromise(decodeBody(CreateBatch, { ...asked, ...more }))).toMatchObject(
      asked,
    )
  })

  it.each<[string, object, string]>([
    ["another window", { completion_window: "48h" }, "completion_window"],
    ["a number as window", { completion_window: 24 }, "completion_window"],
    ["17 tags", { metadata: many(17) }, "metadata"],
    ["a long name", { metadata: { ["x".repeat(65)]: "" } }, "metadata"],
    ["an empty name", { metadata: { "": "x" } }, "metadata"],
    ["a hidden character in a name", { metadata: { "a\nb": "x" } }, "metadata"],
    ["a long text", { metadata: { a: "x".repeat(513) } }, "metadata.a"],
    ["a number as tag", { metadata: { a: 1 } }, "metadata.a"],
    ["a tag inside a tag", { metadata: { a: { b: "c" } } }, "metadata.a"],
    ["a list of tags", { metadata: ["a"] }, "metadata"],
    ["a NUL", { metadata: { a: "x\0" } }, "metadata"],
    ["half a character", { metadata: { a: "\ud83d" } }, "metadata"],
    ["half a character in a name", { metadata: { "\ude42": "" } }, "metadata"],
    ["no file", { input_file_id: undefined }, "input_file_id"],
    ["a list as file", { input_file_id: ["file-1"] }, "input_file_id"],
    ["no endpoint", { endpoint: null }, "endpoint"],
  ])("can't have %s", async (_, more, param) => {
    const refused = await Effect.runPromise(
      Effect.flip(decodeBody(CreateBatch, JSON.parse(JSON.stringify({ ...asked, ...more })))),
    )
    expect([refused.code, refused.param]).toEqual(["invalid_request_error", param])
  })
})
