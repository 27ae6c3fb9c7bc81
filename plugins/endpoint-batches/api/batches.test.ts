import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { targetPath } from "../testing/api-fixture.ts"
import { openBatchApi } from "../testing/batch-api.ts"
import { maxOpenBatches } from "./batch-store.ts"

const { live, test, rows, sandbox, stranger, newFile, create, retrieve, cancel, list } =
  await openBatchApi()

describe("a batch that is created", () => {
  it("is validating, with every field", async () => {
    const metadata = { night: "7", ж: "🙂" }
    const input_file_id = newFile()
    const { status, json } = await create({ input_file_id, completion_window: "24h", metadata })
    expect([status, json]).toMatchObject([
      200,
      {
        object: "batch",
        endpoint: targetPath,
        input_file_id,
        status: "validating",
        completion_window: "24h",
        metadata,
      },
    ])
    expect(json).toMatchObject({
      request_counts: { total: 0, completed: 0, failed: 0 },
      output_file_id: null,
      error_file_id: null,
      errors: null,
      total_cost_idr: 0,
    })
    expect(json.id).toMatch(/^batch-\w{24}$/)
    expect((json.expires_at as number) - json.created_at).toBe(30 * 24 * 3600)
    expect(await retrieve(json.id)).toMatchObject({ status: 200, json })
    const row = await rows().selectFrom("batches_batch").selectAll().executeTakeFirstOrThrow()
    expect(row).toMatchObject({
      account: "acct_1",
      mode: "live",
      key_id: "key_1",
      epoch: 0,
      lease_until: null,
      done_through: 0,
      done_offset: 0n,
    })
    expect(row.deadline_at.getTime() - row.created_at.getTime()).toBe(24 * 3_600_000)
  })

  it("needs no metadata and no window", async () => {
    expect(await create({ metadata: null, completion_window: null })).toMatchObject({
      status: 200,
      json: { metadata: {}, completion_window: "24h" },
    })
  })

  it.each<[string, () => object, number, string, string | null]>([
    ["an unknown file", () => ({ input_file_id: "file-none" }), 404, "not_found", "input_file_id"],
    [
      "an id that is none",
      () => ({ input_file_id: "../%00\0" }),
      404,
      "not_found",
      "input_file_id",
    ],
    [
      "a file of the sandbox",
      () => ({ input_file_id: newFile({ tenant: sandbox.tenant }) }),
      404,
      "not_found",
      "input_file_id",
    ],
    [
      "a stranger's file",
      () => ({ input_file_id: newFile({ tenant: stranger.tenant }) }),
      404,
      "not_found",
      "input_file_id",
    ],
    [
      "an output as input",
      () => ({ input_file_id: newFile({ purpose: "batch_output" }) }),
      400,
      "invalid_request_error",
      "input_file_id",
    ],
    [
      "a knowledge file",
      () => ({ input_file_id: newFile({ purpose: "knowledge" }) }),
      400,
      "invalid_request_error",
      "input_file_id",
    ],
    [
      "another endpoint",
      () => ({ endpoint: "/v1/images/generations" }),
      400,
      "invalid_request_error",
      "endpoint",
    ],
    [
      "an endpoint of the prototype",
      () => ({ endpoint: "constructor" }),
      400,
      "invalid_request_error",
      "endpoint",
    ],
    [
      "another window",
      () => ({ completion_window: "1h" }),
      400,
      "invalid_request_error",
      "completion_window",
    ],
    [
      "odd metadata",
      () => ({ metadata: { a: ["b"] } }),
      400,
      "invalid_request_error",
      "metadata.a",
    ],
    [
      "a tag whose name hides something",
      () => ({ metadata: { "a\u202eb": "c" } }),
      400,
      "invalid_request_error",
      "metadata",
    ],
  ])("can't have %s, and nothing is left", async (_, body, status, code, param) => {
    expect(await create(body())).toMatchObject({ status, json: { code, param } })
    expect((await list()).json.data).toEqual([])
  })

  it("needs a key that reaches batches and what the lines target", async () => {
    const scoped = async (scopes: readonly string[]) =>
      (await create({}, { caller: { ...live, scopes } })).status
    expect([
      await scoped(["batches.create"]),
      await scoped(["echo"]),
      await scoped(["batches.create", "echo"]),
    ]).toEqual([403, 403, 200])
  })

  it("is 402 where no line could be paid, but not in the sandbox", async () => {
    const poor = { account: "acct_poor", mode: "live" as const }
    const { balanceMicros } = await Effect.runPromise(test.core.billing.balance("acct_poor"))
    await Effect.runPromise(
      test.core.billing.adjust({
        id: "all",
        account: "acct_poor",
        amountMicros: -balanceMicros,
        reason: "spent",
      }),
    )
    const asPoor = (mode: "live" | "test") =>
      create(
        { input_file_id: newFile({ tenant: { ...poor, mode } }) },
        { caller: { ...live, tenant: { ...poor, mode } } },
      )
    expect(await asPoor("live")).toMatchObject({
      status: 402,
      json: { code: "insufficient_quota" },
    })
    expect((await asPoor("test")).status).toBe(200)
  })

  it("is made once under an Idempotency-Key; with another body that is 409", async () => {
    const body = { input_file_id: newFile() }
    const first = await create(body, { idempotencyKey: "once" })
    expect(await create(body, { idempotencyKey: "once" })).toEqual(first)
    expect(
      await create({ ...body, metadata: { a: "b" } }, { idempotencyKey: "once" }),
    ).toMatchObject({ status: 409, json: { code: "conflict" } })
    expect((await list()).json.data).toHaveLength(1)
  })

  it("is refused where an account has too many that have not ended", async () => {
    const eight = () => Promise.all(Array.from({ length: 8 }, () => create()))
    const [{ json }] = (await eight()) as [Awaited<ReturnType<typeof create>>]
    const row = await rows()
      .selectFrom("batches_batch")
      .selectAll()
      .limit(1)
      .executeTakeFirstOrThrow()
    const { seq: _, ...copy } = row
    await rows()
      .insertInto("batches_batch")
      .values(
        Array.from({ length: maxOpenBatches - 9 }, (_, n) => ({ ...copy, id: `batch-copy${n}` })),
      )
      .execute()
    const statuses = (await eight()).map(({ status }) => status).sort()
    expect(statuses).toEqual([200, 409, 409, 409, 409, 409, 409, 409])
    expect(
      (await create({ input_file_id: newFile({ tenant: stranger.tenant }) }, { caller: stranger }))
        .status,
    ).toBe(200)
    await cancel(json.id)
    expect((await create()).status).toBe(200)
  })
})
