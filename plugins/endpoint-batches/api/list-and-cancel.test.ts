import { describe, expect, it } from "vitest"
import { openBatchApi } from "../testing/batch-api.ts"

const { test, rows, sandbox, stranger, create, retrieve, cancel, list } = await openBatchApi()

describe("batches", () => {
  it("are listed newest first, page by page", async () => {
    const made: string[] = []
    for (let n = 0; n < 5; n++) made.unshift((await create()).json.id)
    const first = await list({ limit: "2" })
    expect(first).toMatchObject({
      status: 200,
      json: { object: "list", has_more: true, first_id: made[0], last_id: made[1] },
    })
    expect(first.json.data.map(({ id }) => id)).toEqual(made.slice(0, 2))
    expect((await list({ limit: "100", after: made[1]! })).json).toMatchObject({
      has_more: false,
      first_id: made[2],
      last_id: made[4],
    })
    expect((await list({ after: made[4]! })).json).toMatchObject({
      data: [],
      has_more: false,
      first_id: null,
      last_id: null,
    })
    expect((await list()).json.data).toHaveLength(5)
  })

  it.each([
    { limit: "0" },
    { limit: "101" },
    { limit: "x" },
    { after: "batch-none" },
    { after: "\0" },
    { after: "" },
  ])("are not listed for %j", async (query) => {
    expect(await list(query)).toMatchObject({ status: 400, json: { param: Object.keys(query)[0] } })
  })

  it("are their owner's only, test and live apart", async () => {
    const { id } = (await create()).json
    for (const caller of [sandbox, stranger]) {
      expect(await retrieve(id, { caller })).toMatchObject({
        status: 404,
        json: { code: "not_found" },
      })
      expect(await cancel(id, { caller })).toMatchObject({
        status: 404,
        json: { code: "not_found" },
      })
      expect((await list({}, { caller })).json.data).toEqual([])
      expect((await list({ after: id }, { caller })).status).toBe(400)
    }
    expect(await retrieve(id)).toMatchObject({ json: { status: "validating" } })
  })

  it.each(["batch-none", "file-1", "x\0", "", "batch-%"])("have no %j", async (id) => {
    expect((await retrieve(id)).status).toBe(404)
    expect((await cancel(id)).status).toBe(404)
  })
})

describe("a cancel", () => {
  it("is at once, for a batch that has not ended", async () => {
    const { id } = (await create()).json
    test.clock.advance(7_000)
    const { status, json } = await cancel(id)
    const ended = Math.floor(test.clock.nowMs() / 1000)
    expect([status, json]).toMatchObject([
      200,
      {
        id,
        status: "cancelled",
        cancelled_at: ended,
        completed_at: null,
        failed_at: null,
        expired_at: null,
      },
    ])
    expect((await retrieve(id)).json).toEqual(json)
    expect(await cancel(id)).toMatchObject({ status: 409, json: { code: "conflict" } })
    expect((await retrieve(id)).json).toEqual(json)
  })

  it.each(["completed", "failed", "expired", "cancelled"] as const)(
    "of one that is %s is 409",
    async (ended) => {
      const { id } = (await create()).json
      await rows()
        .updateTable("batches_batch")
        .set({ status: ended, ended_at: new Date(0) })
        .where("id", "=", id)
        .execute()
      expect(await cancel(id)).toMatchObject({ status: 409, json: { code: "conflict" } })
      expect(await retrieve(id)).toMatchObject({ json: { status: ended } })
    },
  )

  it("by two at once succeeds once", async () => {
    const { id } = (await create()).json
    await rows()
      .updateTable("batches_batch")
      .set({ status: "in_progress" })
      .where("id", "=", id)
      .execute()
    const statuses = (await Promise.all([cancel(id), cancel(id), cancel(id)]))
      .map(({ status }) => status)
      .sort()
    expect(statuses).toEqual([200, 409, 409])
  })
})
