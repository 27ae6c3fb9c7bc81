import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Endpoint } from "../../../core/index.ts"
import { accountsOf, password } from "../testing/accounts.ts"
import { openSessionFixture, type SessionFixture } from "../testing/session-fixture.ts"
import { viewSeconds } from "./impersonate.ts"

type Server = Pick<SessionFixture, "ask">

let fixture: SessionFixture
let accounts: ReturnType<typeof accountsOf>
beforeAll(async () => {
  fixture = await openSessionFixture()
  accounts = accountsOf(fixture)
})
beforeEach(() => fixture.clock.advance(24 * 3_600_000))
afterAll(() => fixture?.close())

const run = Effect.runPromise
const signedIn = async (role?: "admin") => {
  const { id, email } = await accounts.signUp({ verified: true, ...(role && { role }) })
  return { id, email, token: await accounts.signIn(email) }
}
const admin = () => signedIn("admin")
const view = (token: string, id: string, reason = "ticket 12") =>
  fixture.ask("POST", `/admin/accounts/${id}/impersonate`, { reason }, { token })
const leave = (token: string) =>
  fixture.ask("POST", "/admin/end-impersonation", undefined, { token })
const me = async (token: string, of: Server = fixture) =>
  (await of.ask("GET", "/dashboard/me", undefined, { token })).status
const files = async (token: string, of: Server = fixture) =>
  (await of.ask("GET", "/v1/files", undefined, { token })).status
const records = async (id: string) =>
  (await fixture.auditOf(id)).filter(({ action }) => action.startsWith("account.impersonate"))
/** An administrator's view of a new account. */
const viewing = async () => {
  const [root, ada] = [await admin(), await signedIn()]
  const { json } = await view(root.token, ada.id)
  return { root, ada, token: json.token as string, key: json.api_key as string }
}

describe("an administrator's view of an account", () => {
  it("reads as its owner does, with keys, too, and is recorded with its reason", async () => {
    const [root, ada] = [await admin(), await signedIn()]
    const begun = await view(root.token, ada.id, " why not ")
    const nowS = Math.floor(fixture.clock.nowMs() / 1000)
    expect(begun).toMatchObject({
      status: 200,
      headers: { "cache-control": "no-store" },
      json: { expires_at: nowS + viewSeconds, account: { id: ada.id, email: ada.email } },
    })
    const { token, api_key } = begun.json
    const shown = await fixture.ask("GET", "/dashboard/me", undefined, { token })
    expect(shown).toMatchObject({ status: 200, json: { id: ada.id } })
    expect(await files(api_key)).toBe(200)
    expect(await records(ada.id)).toEqual([
      {
        actor: root.id,
        action: "account.impersonate",
        before: null,
        after: {
          session: expect.stringMatching(/^sess_/),
          reason: "why not",
          expires_at: nowS + viewSeconds,
        },
      },
    ])
    expect(JSON.stringify(await fixture.auditOf(ada.id))).not.toContain(api_key)
  })

  it("is no session for a server of the version before, which would let it change things", async () => {
    const { root, token } = await viewing()
    const claims = (of: string) => run(fixture.signer.verify("session", of))
    expect(await claims(root.token)).toMatchObject({ epoch: 1, sid: expect.any(String) })
    expect(await claims(token)).not.toHaveProperty("epoch")
  })

  it("changes nothing: every other request is refused by one code", async () => {
    const { root, ada, token, key } = await viewing()
    const refused = { status: 403, json: { code: "read_only_session" } }
    const tries: [Endpoint["method"], string, unknown, string][] = [
      ["POST", "/dashboard/keys", { name: "k" }, token],
      ["POST", "/dashboard/playground-key", undefined, token],
      ["PATCH", "/dashboard/keys/key_1", { name: "k" }, token],
      ["DELETE", "/dashboard/keys/key_1", undefined, token],
      ["POST", "/dashboard/password", { current_password: password, password }, token],
      ["POST", "/dashboard/end-sessions", { current_password: password }, token],
      ["POST", "/dashboard/two-factor", { current_password: password }, token],
      ["POST", "/dashboard/delete-account", { current_password: password }, token],
      ["DELETE", "/dashboard/sessions/current", undefined, token],
      ["POST", `/admin/accounts/${root.id}/suspend`, undefined, token],
      ["POST", `/admin/accounts/${ada.id}/impersonate`, { reason: "more" }, token],
      ["POST", "/admin/end-impersonation", undefined, token],
      ["POST", "/v1/files", undefined, key],
      ["PATCH", "/v1/files", undefined, key],
      ["DELETE", "/v1/files", undefined, key],
    ]
    for (const [method, path, body, by] of tries)
      expect(await fixture.ask(method, path, body as never, { token: by }), path).toMatchObject(
        refused,
      )
    expect(await me(ada.token)).toBe(200)
  })

  it("reaches no administration, and no secret; asking for it is its administrator's", async () => {
    const { root, ada, token } = await viewing()
    await fixture.tables
      .updateTable("accounts_account")
      .set({ role: "admin" })
      .where("id", "=", ada.id)
      .execute()
    fixture.clock.advance(3_000)
    const caller = await run(fixture.deps.sessions.authenticate(token))
    expect(caller).toMatchObject({ role: "user", readOnly: "read_only_session" })
    await run(fixture.deps.sessions.denied!(caller, "admin.accounts.list"))
    expect(await fixture.ask("GET", "/admin/accounts", undefined, { token })).toMatchObject({
      status: 403,
      json: { code: "permission_denied" },
    })
    expect((await fixture.auditOf("admin.accounts.list")).at(-1)?.actor).toBe(root.id)
  })

  it("is not on its owner's list, and sees no address on it", async () => {
    const { ada, token } = await viewing()
    const list = async (by: string) =>
      (await fixture.ask("GET", "/dashboard/sessions", undefined, { token: by })).json.data
    expect(await list(ada.token)).toMatchObject([{ address: "192.0.2.1", current: true }])
    expect(await list(token)).toMatchObject([{ address: null, current: false }])
    const keys = await fixture.ask("GET", "/dashboard/keys", undefined, { token: ada.token })
    expect(keys.json.data).toEqual([])
  })

  it.each([
    ["blank", " "],
    ["long", "x".repeat(501)],
    ["of two lines", "a\nb"],
  ])("needs a reason that is not %s", async (_, reason) => {
    const [root, ada] = [await admin(), await signedIn()]
    expect(await view(root.token, ada.id, reason)).toMatchObject({
      status: 400,
      json: { param: "reason" },
    })
    expect(await records(ada.id)).toEqual([])
  })

  it("is not of oneself, of administrators, of deleted accounts, or of none; nor for users", async () => {
    const [root, other, ada] = [await admin(), await admin(), await signedIn()]
    for (const id of [root.id, other.id]) expect((await view(root.token, id)).status, id).toBe(409)
    expect((await view(root.token, "acct_none")).status).toBe(404)
    expect((await view(ada.token, root.id)).status).toBe(403)
    const gone = await signedIn()
    await accounts.post("delete-account", { current_password: password }, { token: gone.token })
    expect((await view(root.token, gone.id)).status).toBe(409)
    expect(await me(root.token)).toBe(200)
  })

  it("reads a suspended account, whose keys stay refused", async () => {
    const [root, ada] = [await admin(), await signedIn()]
    await fixture.ask("POST", `/admin/accounts/${ada.id}/suspend`, undefined, { token: root.token })
    const { token, api_key } = (await view(root.token, ada.id)).json
    expect([await me(token), await files(api_key)]).toEqual([200, 403])
    const post = await fixture.ask("POST", "/dashboard/playground-key", undefined, { token })
    expect(post.json.code).toBe("read_only_session")
  })
})

describe("its end", () => {
  const endedBy = (reason: string) => ({ session: expect.any(String), reason })
  const lastOf = async (id: string) => (await records(id)).at(-1)

  it("is when its administrator leaves; their own session goes on", async () => {
    const { root, ada, token, key } = await viewing()
    expect([await me(token), await files(key)]).toEqual([200, 200])
    expect(await leave(root.token)).toMatchObject({ status: 200, json: {} })
    expect([await me(token), await files(key), await me(root.token)]).toEqual([401, 401, 200])
    expect(await lastOf(ada.id)).toEqual({
      ...{ actor: root.id, action: "account.impersonate_end", before: null },
      after: endedBy("left"),
    })
    await leave(root.token)
    expect(await records(ada.id)).toHaveLength(2)
  })

  it("is when the next one begins in the same session", async () => {
    const { root, ada, token } = await viewing()
    const bob = await signedIn()
    expect(await me(token)).toBe(200)
    await view(root.token, bob.id)
    expect(await me(token)).toBe(401)
    expect(await lastOf(ada.id)).toMatchObject({ after: endedBy("replaced") })
  })

  it("is after 30 minutes, or with its administrator's session", async () => {
    const { root, ada, token, key } = await viewing()
    fixture.clock.advance(viewSeconds * 1000 - 1)
    expect([await me(token), await files(key)]).toEqual([200, 200])
    fixture.clock.advance(1)
    expect([await me(token), await files(key)]).toEqual([401, 401])
    await run(fixture.deps.sessionRows.sweep(new Date(fixture.clock.nowMs())))
    expect(await lastOf(ada.id)).toMatchObject({ actor: root.id, after: endedBy("expired") })
    fixture.clock.advance(24 * 3_600_000 - viewSeconds * 1000 - 60_000)
    const late = (await view(root.token, ada.id)).json
    expect(late.expires_at * 1000 - fixture.clock.nowMs()).toBeLessThanOrEqual(60_000)
  })

  const ways: [string, (root: { id: string; email: string; token: string }) => Promise<unknown>][] =
    [
      [
        "signs out",
        ({ token }) => fixture.ask("DELETE", "/dashboard/sessions/current", undefined, { token }),
      ],
      [
        "ends all sessions",
        ({ token }) => accounts.post("end-sessions", { current_password: password }, { token }),
      ],
      [
        "has a new password",
        ({ token }) =>
          accounts.post(
            "password",
            { current_password: password, password: "a new one 1" },
            { token },
          ),
      ],
      [
        "is suspended",
        async ({ id }) =>
          fixture.ask("POST", `/admin/accounts/${id}/suspend`, undefined, {
            token: (await admin()).token,
          }),
      ],
      [
        "is demoted",
        async ({ id }) =>
          fixture.ask(
            "POST",
            `/admin/accounts/${id}/role`,
            { role: "user" },
            { token: (await admin()).token },
          ),
      ],
      [
        "deletes the account",
        ({ token }) => accounts.post("delete-account", { current_password: password }, { token }),
      ],
    ]
  it.each(ways)("is at once when its administrator %s, elsewhere within 3 s", async (_, act) => {
    const { root, ada, token, key } = await viewing()
    const elsewhere = await fixture.startAgain()
    const all = async () => [
      await me(token),
      await files(key),
      await me(token, elsewhere),
      await files(key, elsewhere),
    ]
    expect(await all()).toEqual([200, 200, 200, 200])
    expect(await act(root)).toMatchObject({ status: 200 })
    expect((await all()).slice(0, 2)).toEqual([401, 401])
    fixture.clock.advance(3_000)
    expect(await all()).toEqual([401, 401, 401, 401])
    expect(await lastOf(ada.id)).toMatchObject({
      actor: root.id,
      action: "account.impersonate_end",
    })
    expect(await me(ada.token)).toBe(200)
  })

  it("is with the customer's new password", async () => {
    const { ada, token, key } = await viewing()
    await accounts.post("end-sessions", { current_password: password }, { token: ada.token })
    expect([await me(token), await files(key)]).toEqual([401, 401])
    expect(await lastOf(ada.id)).toMatchObject({ after: endedBy("account_changed") })
  })
})
