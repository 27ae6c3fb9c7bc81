import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Caller, uuidV7 } from "../../../core/index.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { openTestLedger, type TestLedger } from "../testing/ledger.ts"
import { keyReceiptEndpoint, sessionReceiptEndpoint } from "./endpoints.ts"

let test: TestDatabase
let ledger: TestLedger
beforeAll(async () => {
  test = await openTestDatabase()
  ledger = await openTestLedger(test)
  await ledger.grant(50_000_000_000n)
})
afterAll(() => test.close())

const byKey = (call_id: string, mode: "live" | "test" = "live", account = "acct_1") => {
  const caller: Caller = {
    ...ledger.session(account),
    tenant: { account, mode },
    keyId: "key_9",
    scopes: ["receipts.get"],
  }
  return ledger.ask(keyReceiptEndpoint(ledger.started), {}, caller, { call_id })
}
const bySession = (call_id: string, caller = ledger.session("acct_1"), query = {}) =>
  ledger.ask(sessionReceiptEndpoint(ledger.started), query, caller, { call_id })

describe("a receipt", () => {
  it("says what was used, at which prices, and what it cost; signed as a receipt, the same for any key and the dashboard", async () => {
    const admittedAt = Math.floor(ledger.clock.nowMs() / 1000)
    const id = await ledger.admit({ requestId: "my label" })
    ledger.clock.advance(5_000)
    await ledger.settle(id, { usage: { inputTokens: 3, outputTokens: 1, reasoningTokens: 1 } })
    const { status, json } = await byKey(id)
    expect([status, json]).toEqual([200, { object: "receipt", jws: expect.any(String) }])
    const payload = await Effect.runPromise(
      ledger.signer.verify("receipt", (json as { jws: string }).jws),
    )
    expect(payload).toEqual({
      iss: "https://api.example.com",
      iat: admittedAt + 5,
      jti: id,
      call_id: id,
      account: "acct_1",
      key_id: "key_1",
      request_id: "my label",
      endpoint: "chat.completions",
      model: "m",
      mode: "live",
      status: "settled",
      http_status: 200,
      admitted_at: admittedAt,
      settled_at: admittedAt + 5,
      usage: {
        m: {
          inputTokens: 3,
          imageTokens: 0,
          cacheReadTokens: 0,
          cacheWriteTokens: 0,
          outputTokens: 1,
          reasoningTokens: 1,
          images: 0,
          audioSeconds: 0,
          searchUnits: 0,
        },
      },
      prices: {
        factor: 1,
        models: {
          m: {
            input: "1000000",
            output: "2000000",
            cacheRead: "100000",
            cacheWrite: "1250000",
            image: "0",
            audioSecond: "0",
            searchUnit: "0",
          },
        },
      },
      hold_idr: "1000",
      cost_idr: "5",
      currency: "IDR",
    })
    expect((await bySession(id)).json).toEqual(json)
  })

  it("is there for calls that failed, and cost nothing", async () => {
    const id = await ledger.spend({ outcome: "voided", status: 500 })
    const { jws } = (await byKey(id)).json as { jws: string }
    expect(await Effect.runPromise(ledger.signer.verify("receipt", jws))).toMatchObject({
      status: "voided",
      http_status: 500,
      cost_idr: "0",
    })
  })

  it("is 409 while the call runs", async () => {
    expect(await byKey(await ledger.admit())).toMatchObject({
      status: 409,
      json: { code: "conflict", param: "call_id" },
    })
  })

  it("is 404 for what is no call of this account, or not of this mode, or a dry run", async () => {
    const [live, sandbox, dry] = [
      await ledger.spend(),
      await ledger.spend({ mode: "test" }),
      await ledger.admit({ counts: "rpm" }),
    ]
    const absent = { status: 404, json: { code: "not_found" } }
    for (const id of [uuidV7(0), "", "entry_1", "' OR 1=1 --", dry, live.replace(/.$/, "")])
      expect(await byKey(id)).toMatchObject(absent)
    expect(await byKey(live, "test")).toMatchObject(absent)
    expect(await byKey(sandbox, "live")).toMatchObject(absent)
    expect(await byKey(sandbox, "test")).toMatchObject({ status: 200 })
    expect(await byKey(live, "live", "acct_2")).toMatchObject(absent)
    expect(await bySession(live, ledger.session("acct_2"))).toMatchObject(absent)
    expect(await bySession(sandbox)).toMatchObject({ status: 200 })
    expect(await bySession(live, ledger.session("acct_2"), { account: "acct_1" })).toMatchObject({
      status: 403,
    })
    expect(
      await bySession(live, ledger.session("acct_2", "admin"), { account: "acct_1" }),
    ).toMatchObject({ status: 200 })
  })

  it("shows no id of ours where there was no key", async () => {
    const { jws } = (await byKey(await ledger.spend({ key: "" }))).json as { jws: string }
    expect(await Effect.runPromise(ledger.signer.verify("receipt", jws))).toMatchObject({
      key_id: null,
    })
  })
})
