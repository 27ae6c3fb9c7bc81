import { describe, expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const { accessOf } = await webModule("views/key-access.js")
const { afterProblem } = await webModule("parts/idempotent-send.js")
const { refreshed } = await webModule("parts/list.js")
const { makeV1 } = await webModule("v1.js")
const { Problem } = await webModule("api.js")

describe("what an edited key may do", () => {
  const limited = { name: "a", scopes: ["embeddings.create"], models: null, expires_at: null }
  const values = { name: "b", expires_at: "" }

  it("stays where its scopes are not listed", () => {
    const asBefore = { ...values, "scope:embeddings": "on" }
    for (const listed of [[], ["chat.create"], ["embeddings.create", "chat.create"]])
      expect(accessOf(asBefore, listed, limited)).toEqual({})
    expect(accessOf(values, [], { ...limited, scopes: ["*"] })).toEqual({})
  })

  it("is what is ticked, and everything where nothing is", () => {
    const listed = ["embeddings.create", "chat.create"]
    const more = { ...values, "scope:chat": "on", "scope:embeddings": "on" }
    expect(accessOf(more, listed, limited)).toEqual({ scopes: listed })
    expect(accessOf(values, listed, limited)).toEqual({ scopes: ["*"] })
  })
})

it("an idempotency key stays until it is known what became of its request", () => {
  const of = (status: number, more: object = {}) => {
    const { isOver, problem } = afterProblem(new Problem({ status, code: "conflict", ...more }))
    return [isOver, problem.code]
  }
  const param = "Idempotency-Key"
  for (const unknown of [of(0), of(500), of(429), of(409, { param, retryAfter: "3" })])
    expect(unknown).toEqual([false, "conflict"])
  for (const known of [of(400, { param: "amount_idr" }), of(409), of(402)])
    expect(known).toEqual([true, "conflict"])
  expect(of(409, { param })).toEqual([true, "sent_before"])
})

describe("a list whose first page is read again", () => {
  const rows = (from: number, to: number) =>
    Array.from({ length: from - to + 1 }, (_, at) => ({ id: from - at }))
  const shown = { items: rows(20, 1), hasMore: true, last: 1, busy: false }
  const page = (data: readonly object[], has_more = true) => ({ data, has_more, last_id: 7 })

  it("gets new rows before the others", () => {
    expect(refreshed(shown, page(rows(22, 11)))).toEqual({ ...shown, items: rows(22, 1) })
  })

  it("loses those that the page has no more", () => {
    const data = rows(20, 11).filter(({ id }) => id !== 15)
    const items = rows(20, 1).filter(({ id }) => id !== 15)
    expect(refreshed(shown, page(data))).toEqual({ ...shown, items })
    const empty = { ...shown, items: [], hasMore: false, last: 7 }
    expect(refreshed(shown, page([], false))).toEqual(empty)
  })

  it("begins anew where more came than a page has", () => {
    const anew = { ...shown, items: rows(90, 70), hasMore: true, last: 7 }
    expect(refreshed(shown, page(rows(90, 70)))).toEqual(anew)
  })
})

describe("the temporary key of a session", () => {
  const open = (refused: ReadonlySet<string>, readOnly?: string) => {
    const used: string[] = []
    let made = 0
    const api = {
      post: async () => ({ key: `key-${++made}`, expires_at: 10_000 }),
      send: async (_method: string, _path: string, { key }: { readonly key: string }) => {
        used.push(key)
        if (refused.has(key)) throw new Problem({ status: 401, code: "authentication_error" })
        return { json: async () => ({}) }
      },
    }
    const session = { get: () => ({ token: "session", key: readOnly }) }
    return { v1: makeV1({ api, session, nowMs: () => 0 }), used }
  }

  it("is made anew once where it has ended early", async () => {
    const { v1, used } = open(new Set(["key-1"]))
    await v1.get("/v1/files")
    await v1.get("/v1/files")
    expect(used).toEqual(["key-1", "key-2", "key-2"])
  })

  it("is made anew once for calls that it refuses at the same time", async () => {
    const { v1, used } = open(new Set(["key-1"]))
    await Promise.all([v1.get("/v1/files"), v1.get("/v1/batches")])
    expect(used).toEqual(["key-1", "key-1", "key-2", "key-2"])
  })

  it("is refused where the new one is, too, and where it is an administrator's", async () => {
    const { v1, used } = open(new Set(["key-1", "key-2"]))
    await expect(v1.get("/v1/files")).rejects.toMatchObject({ status: 401 })
    expect(used).toEqual(["key-1", "key-2"])
    const other = open(new Set(["read"]), "read")
    await expect(other.v1.get("/v1/files")).rejects.toMatchObject({ status: 401 })
    expect(other.used).toEqual(["read"])
  })
})
