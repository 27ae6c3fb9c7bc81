import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { accountsOf, password } from "../testing/accounts.ts"
import { openSessionFixture, type SessionFixture } from "../testing/session-fixture.ts"
import { maxSessions } from "./session-rows.ts"

let fixture: SessionFixture
let accounts: ReturnType<typeof accountsOf>
beforeAll(async () => {
  fixture = await openSessionFixture()
  accounts = accountsOf(fixture)
})
beforeEach(() => fixture.clock.advance(24 * 3_600_000))
afterAll(() => fixture?.close())

const run = Effect.runPromise
const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
const logIn = async (email: string, how = {}, secret = password): Promise<string> =>
  (await accounts.post("login", { email, password: secret }, how)).json.token
const list = async (token: string, of: Pick<SessionFixture, "ask"> = fixture) =>
  (await of.ask("GET", "/dashboard/sessions", undefined, { token })).json.data
const currentOf = async (token: string): Promise<string> =>
  (await list(token)).find(({ current }: { current: boolean }) => current).id
const end = (token: string, id: string) =>
  fixture.ask("DELETE", `/dashboard/sessions/${encodeURIComponent(id)}`, undefined, { token })
const statusOf = async (token: string, of: Pick<SessionFixture, "ask"> = fixture) =>
  (await of.ask("GET", "/dashboard/me", undefined, { token })).status
const signedUp = async () => (await accounts.signUp({ verified: true })).email
const stored = () => fixture.tables.selectFrom("accounts_session").selectAll().execute()

describe("the list of sessions", () => {
  it("says where each began, when it was last seen, and which one asks", async () => {
    const email = await signedUp()
    const first = await logIn(email, { agent: firefox, address: "192.0.2.7" })
    const startedS = Math.floor(fixture.clock.nowMs() / 1000)
    fixture.clock.advance(120_000)
    const second = await logIn(email, { agent: "curl/8.5.0", address: "2001:db8::1" })
    expect(await list(second)).toEqual([
      {
        ...{ id: await currentOf(second), object: "session", current: true },
        ...{ created_at: startedS + 120, last_seen_at: startedS + 120 },
        ...{ expires_at: startedS + 120 + 86_400 },
        ...{ browser: "curl", os: null, address: "2001:db8::1" },
      },
      {
        ...{ id: await currentOf(first), object: "session", current: false },
        ...{ created_at: startedS, last_seen_at: startedS, expires_at: startedS + 86_400 },
        ...{ browser: "Firefox 128", os: "Linux", address: "192.0.2.7" },
      },
    ])
    fixture.clock.advance(60_000)
    await statusOf(first)
    await run(fixture.deps.lastSeen.flush)
    expect((await list(second)).map((one: { last_seen_at: number }) => one.last_seen_at)).toEqual([
      startedS + 180,
      startedS + 120,
    ])
    const other = await logIn(await signedUp())
    expect((await list(other)).map(({ current }: { current: boolean }) => current)).toEqual([true])
  })

  it.each([
    ["a new password", "password", { current_password: password, password: "a new password" }],
    ["the end of all others", "end-sessions", { current_password: password }],
  ])("has one session after %s", async (_, path, body) => {
    const email = await signedUp()
    const [token, other] = [await logIn(email), await logIn(email)]
    const next = (await accounts.post(path, body, { token, agent: firefox })).json.token
    expect(await list(next)).toMatchObject([{ browser: "Firefox 128", current: true }])
    expect([await statusOf(token), await statusOf(other)]).toEqual([401, 401])
  })

  it("has none of before a reset, nor any that is over", async () => {
    const { email, id } = await accounts.signUp({ verified: true })
    await logIn(email)
    await accounts.post("forgot", { email })
    await fixture.idle()
    const token = fixture.mailedToken(email, "reset")
    await accounts.post("reset", { token, password: "a new password" })
    const after = await logIn(email, {}, "a new password")
    expect(await list(after)).toHaveLength(1)
    fixture.clock.advance(23 * 3_600_000)
    const late = await logIn(email, {}, "a new password")
    fixture.clock.advance(3_600_000)
    expect(await list(late)).toHaveLength(1)
    const rows = await stored()
    const at = new Date(fixture.clock.nowMs())
    expect(await run(fixture.deps.sessionRows.sweep(at))).toBe(rows.length - 1)
    expect(await stored()).toMatchObject([{ account_id: id }])
  })
})

describe("the end of one session", () => {
  it("is at once here, within 3 s elsewhere, leaves the others, and is recorded", async () => {
    const { email, id } = await accounts.signUp({ verified: true })
    const [own, lost] = [await logIn(email), await logIn(email)]
    const elsewhere = await fixture.startAgain()
    expect([await statusOf(lost), await statusOf(lost, elsewhere)]).toEqual([200, 200])
    const session = await currentOf(lost)
    expect(await end(own, session)).toMatchObject({
      status: 200,
      json: { id: session, object: "session", deleted: true },
    })
    expect([await statusOf(lost), await statusOf(lost, elsewhere)]).toEqual([401, 200])
    fixture.clock.advance(3_000)
    expect([await statusOf(lost, elsewhere), await statusOf(own)]).toEqual([401, 200])
    expect(await list(own)).toMatchObject([{ current: true }])
    expect(await end(own, session)).toMatchObject({ status: 404, json: { code: "not_found" } })
    expect(await fixture.auditOf(id)).toMatchObject([
      { action: "account.signup" },
      { action: "account.end_session", actor: id, after: { session } },
    ])
  })

  it("that asks is the signing out", async () => {
    const token = await logIn(await signedUp())
    expect((await end(token, "current")).status).toBe(200)
    expect(await statusOf(token)).toBe(401)
  })

  it("is not for sessions of others, nor for what is no id", async () => {
    const [mine, theirs] = [await logIn(await signedUp()), await logIn(await signedUp())]
    for (const id of [await currentOf(theirs), "sess_none", "x".repeat(101), "\u0000", "'"])
      expect((await end(mine, id)).status).toBe(404)
    expect(await statusOf(theirs)).toBe(200)
  })

  it("does not reach a token of before sessions had rows, which goes on until its epoch", async () => {
    const { email, id } = await accounts.signUp({ verified: true })
    const nowS = Math.floor(fixture.clock.nowMs() / 1000)
    const claims = { sub: id, iat: nowS, exp: nowS + 60, epoch: 1 }
    const old = await run(fixture.signer.sign("session", claims))
    expect(await list(old)).toEqual([])
    expect((await end(old, "current")).status).toBe(404)
    const token = await logIn(email)
    expect((await list(old)).map(({ current }: { current: boolean }) => current)).toEqual([false])
    await accounts.post("end-sessions", { current_password: password }, { token })
    expect(await statusOf(old)).toBe(401)
  })
})

it("an account has at most 100: one more ends the one that was seen least recently", async () => {
  const { id, email } = await accounts.signUp({ verified: true })
  const begin = async () => (await run(fixture.deps.sessions.begin({ id, session_epoch: 1 }))).token
  const first = await begin()
  fixture.clock.advance(60_000)
  const second = await begin()
  fixture.clock.advance(1)
  for (let n = 2; n < maxSessions; n++) await begin()
  expect([await statusOf(first), await statusOf(second)]).toEqual([200, 200])
  await run(fixture.deps.lastSeen.flush)
  fixture.clock.advance(60_000)
  await statusOf(first)
  await run(fixture.deps.lastSeen.flush)
  const last = await logIn(email)
  expect(await list(last)).toHaveLength(maxSessions)
  expect([await statusOf(first), await statusOf(second)]).toEqual([200, 401])
})
