import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { errorOf } from "../../../testing/dashboard-client.ts"
import {
  type Acts,
  type BatchPlatform,
  chatLine,
  embedLine,
  openBatchPlatform,
  rerankLine,
} from "../testing/batch-platform.ts"

let platform: BatchPlatform
let live: Acts
beforeAll(async () => {
  platform = await openBatchPlatform()
  live = platform.live
})
afterAll(() => platform?.close())

const ids = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}`)

describe("the official client", () => {
  it("uploads, creates, polls and downloads: every line once, in order, at half the price", async () => {
    const before = await platform.balance()
    const asked = ids(300)
    const created = await live.create(asked.map((id) => chatLine(id)).join("\n"), {
      metadata: { night: "7" },
    })
    expect(created).toMatchObject({
      object: "batch",
      status: "validating",
      metadata: { night: "7" },
      request_counts: { total: 0, completed: 0, failed: 0 },
      output_file_id: null,
    })
    const batch = await live.ended(created.id)
    expect(batch).toMatchObject({
      status: "completed",
      request_counts: { total: 300, completed: 300, failed: 0 },
      error_file_id: null,
      errors: null,
      metadata: { night: "7" },
    })
    expect(
      batch.completed_at! >= batch.in_progress_at! && batch.in_progress_at! >= batch.created_at,
    ).toBe(true)
    const lines = await live.linesOf(batch.output_file_id)
    expect(lines.map(({ custom_id }) => custom_id)).toEqual(asked)
    expect(new Set(lines.map(({ id }) => id)).size).toBe(300)
    expect(lines[7]).toMatchObject({
      id: expect.stringMatching(/^batch_req_/),
      response: {
        status_code: 200,
        body: { object: "chat.completion", choices: [{ message: { content: "say line 7" } }] },
      },
      error: null,
    })
    const usages = lines.map(
      ({ response }) =>
        response?.body.usage as { prompt_tokens: number; completion_tokens: number },
    )
    const half = usages.reduce(
      (sum, { prompt_tokens, completion_tokens }) =>
        sum + Math.ceil((prompt_tokens * 1_500 + completion_tokens * 6_000) / 2),
      0,
    )
    const { total_cost_idr } = batch as unknown as { total_cost_idr: number }
    expect(Math.round(total_cost_idr * 1e6)).toBe(half)
    const after = await platform.balance()
    expect(Math.round((before.balance_idr - after.balance_idr) * 1e6)).toBe(half)
    expect(after.held_idr).toBe(0)
    expect(
      (await live.client.files.list({ purpose: "batch_output" as "batch" })).data.map(
        ({ id }) => id,
      ),
    ).toContain(batch.output_file_id)
  })

  it.each<[string, "/v1/embeddings" | "/v1/rerank", (id: string) => string]>([
    ["embeddings", "/v1/embeddings", embedLine],
    ["rerank", "/v1/rerank", rerankLine],
  ])("does %s in batches", async (_, endpoint, line) => {
    const created = await live.create(
      ids(20)
        .map((id) => line(id))
        .join("\n"),
      { endpoint: endpoint as "/v1/embeddings" },
    )
    const batch = await live.ended(created.id)
    expect(batch).toMatchObject({
      endpoint,
      status: "completed",
      request_counts: { total: 20, completed: 20, failed: 0 },
    })
    const lines = await live.linesOf(batch.output_file_id)
    expect(lines.map(({ custom_id }) => custom_id)).toEqual(ids(20))
  })

  it("finds what failed in the error file, in order, and the rest in the output", async () => {
    const content = [
      chatLine("a"),
      chatLine("b", "x", { temperature: 9 }),
      chatLine("c"),
      chatLine("d", "x", { stream: true }),
      chatLine("e"),
    ]
    const batch = await live.ended((await live.create(content.join("\n"))).id)
    expect(batch).toMatchObject({
      status: "completed",
      request_counts: { total: 5, completed: 3, failed: 2 },
    })
    expect(
      (await live.linesOf(batch.output_file_id)).map(({ custom_id, error }) => [custom_id, error]),
    ).toEqual([
      ["a", null],
      ["c", null],
      ["e", null],
    ])
    const failed = await live.linesOf(batch.error_file_id)
    expect(
      failed.map(({ custom_id, response, error }) => [custom_id, response, error?.type]),
    ).toEqual([
      ["b", null, "invalid_request_error"],
      ["d", null, "invalid_request_error"],
    ])
  })

  it("has a line of an unknown model failed alone, for nothing, and says so", async () => {
    const before = await platform.balance()
    const input = [chatLine("a"), chatLine("b", "x", { model: "gpt-4" }), chatLine("c")].join("\n")
    const batch = await live.ended((await live.create(input)).id)
    expect(batch).toMatchObject({
      status: "completed",
      request_counts: { total: 3, completed: 2, failed: 1 },
      errors: { data: [{ code: "model_not_found", line: 2, param: "body.model" }] },
    })
    expect(batch.errors?.data?.[0]?.message).toContain("Lines that name it: 1.")
    const failed = await live.linesOf(batch.error_file_id)
    expect(failed).toMatchObject([{ custom_id: "b", error: { code: "model_not_found" } }])
    const done = await live.linesOf(batch.output_file_id)
    expect(done.map(({ custom_id }) => custom_id)).toEqual(["a", "c"])
    const { total_cost_idr } = batch as unknown as { total_cost_idr: number }
    const after = await platform.balance()
    expect(before.balance_idr - after.balance_idr).toBeCloseTo(total_cost_idr, 6)
    const file = await live.client.files.waitForProcessing(batch.output_file_id!, {
      pollInterval: 1,
    })
    expect(file).toMatchObject({ status: "processed" })
  })

  it("says by line what is wrong with an input", async () => {
    const batch = await live.ended(
      (
        await live.create(
          [chatLine("a"), "", "oops", chatLine("a"), chatLine("b", "x", { model: "gpt-4" })].join(
            "\n",
          ),
        )
      ).id,
    )
    expect(batch).toMatchObject({
      status: "failed",
      output_file_id: null,
      error_file_id: null,
      request_counts: { completed: 0, failed: 0 },
    })
    expect(batch.failed_at).toEqual(expect.any(Number))
    expect(batch.errors?.data?.map(({ code, line, param }) => [code, line, param])).toEqual([
      ["invalid_json", 3, null],
      ["duplicate_custom_id", 4, "custom_id"],
      ["model_not_found", 5, "body.model"],
    ])
  })

  it.each<[string, string | Uint8Array<ArrayBuffer>, string, number | null]>([
    ["nothing in it", "", "empty_file", null],
    ["blank lines only", "\n\r\n \n", "empty_file", null],
    [
      "bytes that are no text",
      new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0xff]),
      "invalid_utf8",
      1,
    ],
    [
      "a line of 9 MB",
      `${chatLine("a")}\n${chatLine("b", "x".repeat(9 * 2 ** 20))}`,
      "line_too_long",
      2,
    ],
    ["a list as line", `[${chatLine("a")}]`, "invalid_request_error", 1],
  ])(
    "has a batch failed by a file with %s, and nothing is left of it",
    async (_, content, code, line) => {
      const before = [
        await platform.balance(),
        (await live.client.files.list({ purpose: "batch_output" as "batch" })).data,
      ]
      const batch = await live.ended((await live.create(content)).id)
      expect(batch).toMatchObject({
        status: "failed",
        output_file_id: null,
        error_file_id: null,
        total_cost_idr: 0,
      })
      expect(batch.errors?.data?.[0]).toMatchObject({ code, line })
      expect([
        await platform.balance(),
        (await live.client.files.list({ purpose: "batch_output" as "batch" })).data,
      ]).toEqual(before)
    },
  )

  it("may end its lines as it likes, with a mark at the start and a line of 5 MB", async () => {
    const batch = await live.ended(
      (
        await live.create(
          `\ufeff${chatLine("a")}\r\n\r\n${chatLine("b", "x".repeat(5 * 2 ** 20))}\n${chatLine("c")}`,
        )
      ).id,
    )
    expect(batch).toMatchObject({ status: "completed", request_counts: { total: 3 } })
    const all = [
      ...(await live.linesOf(batch.output_file_id)),
      ...(batch.error_file_id ? await live.linesOf(batch.error_file_id) : []),
    ]
    expect(all.map(({ custom_id }) => custom_id).sort()).toEqual(["a", "b", "c"])
  })

  it("cancels at once, and gets no output", async () => {
    const slow = ids(200).map((id) => chatLine(id, "word ".repeat(50), { model: "svc-omni" }))
    const { id } = await live.create(slow.join("\n"))
    await expect
      .poll(async () => (await live.client.batches.retrieve(id)).request_counts?.completed, {
        timeout: 30_000,
      })
      .toBeGreaterThan(0)
    const cancelled = await live.client.batches.cancel(id)
    expect(cancelled).toMatchObject({
      id,
      status: "cancelled",
      output_file_id: null,
      error_file_id: null,
    })
    expect(cancelled.cancelled_at).toEqual(expect.any(Number))
    expect(await errorOf(live.client.batches.cancel(id))).toMatchObject({
      status: 409,
      code: "conflict",
    })
    await expect.poll(async () => (await platform.balance()).held_idr, { timeout: 30_000 }).toBe(0)
    expect(await live.client.batches.retrieve(id)).toMatchObject({
      status: "cancelled",
      output_file_id: null,
    })
  })

  it("lists all batches, page by page", async () => {
    const made = [
      await live.create(chatLine("a")),
      await live.create(chatLine("a")),
      await live.create(chatLine("a")),
    ]
      .map(({ id }) => id)
      .reverse()
    const seen: string[] = []
    for await (const { id } of live.client.batches.list({ limit: 2 })) seen.push(id)
    expect(seen.slice(0, 3)).toEqual(made)
    expect(new Set(seen).size).toBe(seen.length)
    expect(
      (await live.client.batches.list({ limit: 1, after: made[0]! })).data.map(({ id }) => id),
    ).toEqual([made[1]])
    for (const id of made) await live.ended(id)
  })

  it("makes one batch under an Idempotency-Key", async () => {
    const input_file_id = await live.upload(chatLine("a"))
    const again = (metadata = {}) =>
      live.client.batches.create(
        { input_file_id, endpoint: "/v1/chat/completions", completion_window: "24h", metadata },
        { headers: { "Idempotency-Key": "once" } },
      )
    const { id } = await again()
    expect((await again()).id).toBe(id)
    expect(await errorOf(again({ other: "body" }))).toMatchObject({ status: 409, code: "conflict" })
    await live.ended(id)
  })
})
