import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Caller, type Identity, isApiError } from "../../../core/index.ts"
import { openSessionFixture, type SessionFixture } from "../testing/session-fixture.ts"

let fixture: SessionFixture
beforeAll(async () => {
  fixture = await openSessionFixture()
})
afterAll(() => fixture?.close())

const run = Effect.runPromise
const outcome = (effect: ReturnType<Identity["authenticate"]>) =>
  run(
    effect.pipe(
      Effect.catch((error) =>
        isApiError(error) ? Effect.succeed({ code: error.code as string }) : Effect.die(error),
      ),
    ),
  )
const who = (token: string, of = fixture.deps) => outcome(of.sessions.authenticate(token))

const addAccount = async (
  more: { readonly role?: "user" | "admin"; readonly suspended?: boolean } = {},
) => {
  const id = fixture.deps.ids.make("acct_")
  const at = new Date(fixture.clock.nowMs())
  const row = {
    id,
    email: `${id.toLowerCase()}@example.com`,
    password_hash: "-",
    role: more.role ?? "user",
    is_first: false,
    verified_at: null,
    created_at: at,
  } as const
  await fixture.tables
    .insertInto("accounts_account")
    .values({ ...row, suspended_at: more.suspended ? at : null })
    .execute()
  return id
}
const begin = async (id: string) =>
  (await run(fixture.deps.sessions.begin({ id, session_epoch: 1 }))).token
const change = (id: string, changes: Parameters<SessionFixture["deps"]["accounts"]["change"]>[1]) =>
  run(fixture.database.transaction((tx) => fixture.deps.accounts.change(id, changes, tx)))

describe("a session", () => {
  it("is of its account, without a key", async () => {
    const id = await addAccount()
    expect(await who(await begin(id))).toEqual({
      tenant: { account: id, mode: "live" },
      scopes: [],
      role: "user",
      limits: fixture.deps.settings.defaultLimits && expect.any(Object),
      session: { id: expect.stringMatching(/^sess_/) },
    })
  })

  it("lasts 24 hours", async () => {
    const token = await begin(await addAccount())
    fixture.clock.advance(24 * 3_600_000 - 1)
    expect(await who(token)).toMatchObject({ role: "user" })
    fixture.clock.advance(1)
    expect(await who(token)).toEqual({ code: "authentication_error" })
  })

  it("has the role and the suspension of the row, not of when it began; elsewhere within 3 s, here at once when it is announced", async () => {
    const id = await addAccount({ role: "admin" })
    const other = await fixture.startAgain()
    const token = await begin(id)
    const both = async () => [await who(token), await who(token, other.deps)] as Caller[]
    expect((await both()).map(({ role, readOnly }) => ({ role, readOnly }))).toEqual(
      Array(2).fill({ role: "admin", readOnly: undefined }),
    )
    await change(id, { suspended_at: new Date(fixture.clock.nowMs()) })
    fixture.deps.keyChanges.announce({ account: id })
    expect((await both()).map(({ role, readOnly }) => ({ role, readOnly }))).toEqual([
      { role: "user", readOnly: "account_suspended" },
      { role: "admin", readOnly: undefined },
    ])
    fixture.clock.advance(3_000)
    expect((await both()).map(({ readOnly }) => readOnly)).toEqual(
      Array(2).fill("account_suspended"),
    )
    await change(id, { suspended_at: null })
    fixture.clock.advance(3_000)
    expect((await both()).map(({ role, readOnly }) => ({ role, readOnly }))).toEqual(
      Array(2).fill({ role: "admin", readOnly: undefined }),
    )
  })

  it("ends when the account's epoch is raised", async () => {
    const id = await addAccount()
    const token = await begin(id)
    await change(id, { session_epoch: 2 })
    expect(await who(token)).toEqual({ code: "authentication_error" })
  })

  it("is nothing that somebody made up, changed, or signed for something else", async () => {
    const id = await addAccount()
    const token = await begin(id)
    const sign = (purpose: "session" | "receipt", payload: unknown) =>
      run(fixture.signer.sign(purpose, payload))
    const nowS = Math.floor(fixture.clock.nowMs() / 1000)
    const claims = { sub: id, iat: nowS, exp: nowS + 60, epoch: 1 }
    expect(await who(await sign("session", claims))).toMatchObject({ tenant: { account: id } })
    const wrong = [
      await sign("receipt", claims),
      await sign("session", { ...claims, sub: "acct_nobody" }),
      await sign("session", { ...claims, sub: 1 }),
      await sign("session", { ...claims, epoch: "1" }),
      await sign("session", { ...claims, epoch: 0 }),
      await sign("session", { sub: id, epoch: 1 }),
      await sign("session", []),
      `${token}x`,
      token.slice(0, -1),
      token.replace(".", ".."),
      token.toUpperCase(),
      ` ${token}`,
      "",
      "svc_live_0123456789abcdefghijklmnopqrstuv",
      "x".repeat(100_000),
    ]
    for (const text of wrong)
      expect(await who(text), text.slice(0, 80)).toEqual({ code: "authentication_error" })
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string({ unit: "binary", maxLength: 300 }),
          fc
            .array(fc.base64String(), { minLength: 3, maxLength: 3 })
            .map((parts) => parts.join(".")),
        ),
        async (text) => {
          expect(await who(text)).toEqual({ code: "authentication_error" })
        },
      ),
    )
    expect(await outcome(fixture.deps.sessions.resume(id))).toEqual({
      code: "authentication_error",
    })
  })

  it("that asks for more than its role leaves a trace, and can't fill the log with them", async () => {
    const caller = (await who(await begin(await addAccount()))) as Caller
    for (let n = 0; n < 70; n++)
      await run(fixture.deps.sessions.denied!(caller, "admin.accounts.grant"))
    const traces = await fixture.auditOf("admin.accounts.grant")
    expect(traces).toHaveLength(60)
    expect(traces[0]).toEqual({
      actor: caller.tenant.account,
      action: "admin.deny",
      before: null,
      after: null,
    })
  })
})
