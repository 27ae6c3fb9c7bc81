import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { errorOf } from "../../../testing/dashboard-client.ts"
import {
  type Acts,
  type BatchPlatform,
  chatLine,
  openBatchPlatform,
} from "../testing/batch-platform.ts"

let platform: BatchPlatform
let live: Acts
beforeAll(async () => {
  platform = await openBatchPlatform()
  live = platform.live
})
afterAll(() => platform?.close())

const ids = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}`)

describe("test keys and strangers", () => {
  it("have batches of their own; those of the sandbox cost nothing", async () => {
    const { test, other, balance } = platform
    const before = await balance()
    const batch = await test.ended(
      (
        await test.create(
          ids(10)
            .map((id) => chatLine(id))
            .join("\n"),
        )
      ).id,
    )
    expect(batch).toMatchObject({
      status: "completed",
      request_counts: { completed: 10 },
      total_cost_idr: 0,
    })
    expect(await test.linesOf(batch.output_file_id)).toHaveLength(10)
    expect(await balance()).toEqual(before)
    for (const { client } of [live, other]) {
      for (const act of [
        () => client.batches.retrieve(batch.id),
        () => client.batches.cancel(batch.id),
        () => client.files.content(batch.output_file_id!),
      ])
        expect(await errorOf(act())).toMatchObject({ status: 404, code: "not_found" })
      const foreign = client.batches.create({
        input_file_id: batch.input_file_id,
        endpoint: "/v1/chat/completions",
        completion_window: "24h",
      })
      expect(await errorOf(foreign)).toEqual({
        status: 404,
        code: "not_found",
        param: "input_file_id",
      })
      const seen: string[] = []
      for await (const { id } of client.batches.list()) seen.push(id)
      expect(seen).not.toContain(batch.id)
    }
  })
})

describe("what can't be", () => {
  it("is refused at creation, with the field", async () => {
    const input_file_id = await live.upload(chatLine("a"))
    const output = (await live.ended((await live.create(chatLine("a"))).id)).output_file_id!
    const create = async (more: object) =>
      errorOf(
        live.client.batches.create({
          input_file_id,
          endpoint: "/v1/chat/completions",
          completion_window: "24h",
          ...more,
        }),
      )
    const bad = (param: string) => ({ status: 400, code: "invalid_request_error", param })
    expect(await create({ endpoint: "/v1/models" })).toEqual(bad("endpoint"))
    expect(await create({ completion_window: "1h" })).toEqual(bad("completion_window"))
    expect(await create({ metadata: { a: 1 } })).toEqual(bad("metadata.a"))
    expect(await create({ input_file_id: output })).toEqual(bad("input_file_id"))
    expect(await create({ input_file_id: undefined })).toEqual(bad("input_file_id"))
    await live.client.files.delete(input_file_id)
    expect(await create({})).toEqual({ status: 404, code: "not_found", param: "input_file_id" })
    expect((await platform.raw("/v1/batches/x/cancel")).status).toBe(405)
  })
})

describe("an account at Rp0", () => {
  it("makes no batch, and still reaches what it has", async () => {
    const { other } = platform
    const { id } = await other.create(chatLine("a"))
    await other.ended(id)
    const { total_cost_idr } = (await other.client.batches.retrieve(id)) as unknown as {
      total_cost_idr: number
    }
    await platform.takeFromOther(50_000 - total_cost_idr)
    expect(await errorOf(other.create(chatLine("a")))).toEqual({
      status: 402,
      code: "insufficient_quota",
      param: null,
    })
    expect((await other.client.batches.list()).data.map((batch) => batch.id)).toEqual([id])
  })
})

describe("a dry run", () => {
  it("forecasts errors and cost as they come, and makes nothing", async () => {
    const before = (await live.client.batches.list({ limit: 1 })).data[0]?.id
    const content = [
      ...ids(40).map((id) => chatLine(id, "hello", { max_tokens: 5 })),
      chatLine("bad", "x", { temperature: 9 }),
    ].join("\n")
    const body = { input_file_id: await live.upload(content), endpoint: "/v1/chat/completions" }
    const reply = await platform.raw("/v1/batches", {
      method: "POST",
      headers: { "x-dry-run": "1" },
      body: JSON.stringify(body),
    })
    const said = (await reply.json()) as Record<string, unknown>
    expect([reply.status, said]).toMatchObject([
      200,
      {
        object: "dry_run",
        endpoint: "/v1/batches",
        model: "svc-lyt",
        would_succeed: true,
        lines: 41,
        invalid_lines: 1,
        sampled_lines: 40,
        max_output_tokens: 200,
      },
    ])
    expect(said.errors).toMatchObject([
      { code: "invalid_request_error", line: 41, param: "body.temperature" },
    ])
    expect(said.estimated_seconds).toEqual(expect.any(Number))
    expect((await live.client.batches.list({ limit: 1 })).data[0]?.id).toBe(before)
    const batch = await live.ended((await live.create(content)).id)
    expect(batch.request_counts).toEqual({ total: 41, completed: 40, failed: 1 })
    const { total_cost_idr } = batch as unknown as { total_cost_idr: number }
    expect([total_cost_idr > 0, total_cost_idr <= (said.cost_idr as number)]).toEqual([true, true])
  })

  it("reads 50,000 lines", async () => {
    const file = await live.upload(
      Array.from({ length: 50_000 }, (_, n) => chatLine(String(n))).join("\n"),
    )
    const body = JSON.stringify({ input_file_id: file, endpoint: "/v1/chat/completions" })
    const reply = await platform.raw("/v1/batches", {
      method: "POST",
      headers: { "x-dry-run": "1" },
      body,
    })
    expect(await reply.json()).toMatchObject({ lines: 50_000, invalid_lines: 0, errors: [] })
  })
})
