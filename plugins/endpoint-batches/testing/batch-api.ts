import { afterAll, beforeEach } from "vitest"
import type { Caller } from "../../../core/index.ts"
import type { BatchTables } from "../tables.ts"
import { type Fixture, lineOf, openFixture, targetPath } from "./api-fixture.ts"

/** A batch as the API shows it. */
export type ShownBatch = Record<string, unknown> & {
  readonly id: string
  readonly status: string
  readonly created_at: number
}

/** The endpoints of batches as functions, with an empty table before each test. */
export const openBatchApi = async () => {
  const test = await openFixture()
  const live = test.core.caller
  const rows = () => test.deps.database.queries<BatchTables>()
  const sandbox: Caller = { ...live, tenant: { ...live.tenant, mode: "test" } }
  const stranger: Caller = { ...live, tenant: { account: "acct_2", mode: "live" } }
  afterAll(() => test.close())
  beforeEach(async () => {
    await rows().deleteFrom("batches_batch").execute()
    // another minute, for the rate limit
    test.clock.advance(61_000)
  })

  const newFile = (more: Parameters<Fixture["addFile"]>[1] = {}) =>
    test.addFile(lineOf("a"), more).id
  const create = async (body: object = {}, more: object = {}) => {
    const { status, json } = await test.ask("batches.create", {
      body: { input_file_id: newFile(), endpoint: targetPath, ...body },
      ...more,
    })
    return { status, json: json as ShownBatch }
  }
  const item = (id: string, more: object = {}) => ({ params: { id }, ...more })
  const retrieve = (id: string, more: object = {}) => test.ask("batches.retrieve", item(id, more))
  const cancel = (id: string, more: object = {}) => test.ask("batches.cancel", item(id, more))
  const list = async (query: object = {}, more: object = {}) => {
    const { status, json } = await test.ask("batches.list", {
      query: query as Record<string, string>,
      ...more,
    })
    return {
      status,
      json: json as {
        readonly data: readonly ShownBatch[]
        readonly has_more: boolean
        readonly param?: string
      },
    }
  }
  return { test, live, rows, sandbox, stranger, newFile, create, item, retrieve, cancel, list }
}
