import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { accountsOf, password } from "../testing/accounts.ts"
import { openSessionFixture, type SessionFixture } from "../testing/session-fixture.ts"

let fixture: SessionFixture
let accounts: ReturnType<typeof accountsOf>
beforeAll(async () => {
  fixture = await openSessionFixture()
  accounts = accountsOf(fixture)
})
beforeEach(() => fixture.clock.advance(24 * 3_600_000))
afterAll(() => fixture?.close())

describe("a forgotten password", () => {
  it("is replaced by a link that works once, which ends all sessions and tells the owner", async () => {
    const { email, id } = await accounts.signUp({ verified: true })
    const other = await fixture.startAgain()
    const old = await accounts.signIn(email)
    for (const server of [fixture, other])
      expect((await server.ask("GET", "/dashboard/me", undefined, { token: old })).status).toBe(200)
    expect(await accounts.post("forgot", { email })).toEqual({
      status: 202,
      headers: {},
      json: {},
      text: "",
      events: [],
      costMicros: undefined,
    })
    await fixture.idle()
    const token = fixture.mailedToken(email, "reset")
    expect(await accounts.post("reset", { token, password: "new password" })).toMatchObject({
      status: 200,
      json: { id, object: "account", email_verified: true },
    })
    expect((await accounts.me(old)).status).toBe(401)
    fixture.clock.advance(3_000)
    expect((await other.ask("GET", "/dashboard/me", undefined, { token: old })).status).toBe(401)
    expect((await accounts.post("login", { email, password })).status).toBe(401)
    expect((await accounts.me(await accounts.signIn(email, "new password"))).status).toBe(200)
    expect(await accounts.post("reset", { token, password: "newer password" })).toMatchObject({
      status: 400,
      json: { param: "token" },
    })
    expect(accounts.mailsTo(email).at(-1)?.subject).toBe("Your password was changed")
    expect((await fixture.auditOf(id)).map(({ action }) => action)).toEqual([
      "account.signup",
      "account.forgot",
      "account.reset",
      "login.fail",
      "token.refuse",
    ])
  })

  it("is answered alike, and at once, when nobody has the e-mail", async () => {
    const { email } = await accounts.signUp()
    const unknown = accounts.newEmail()
    const rows = () =>
      fixture.tables
        .selectFrom("accounts_token")
        .select("purpose")
        .where("purpose", "=", "reset")
        .execute()
    const before = (await rows()).length
    expect(await accounts.post("forgot", { email: unknown })).toEqual(
      await accounts.post("forgot", { email }),
    )
    await fixture.idle()
    expect(await rows()).toHaveLength(before + 1)
    expect(accounts.mailsTo(unknown)).toEqual([])
    for (const body of [
      {},
      { email: 1 },
      { email: "no address" },
      { email: "a@b.c\r\nBcc: x@y.z" },
    ])
      expect((await accounts.post("forgot", body)).status).toBe(400)
  })

  it("verifies the account, and revokes what keys somebody else may have made before", async () => {
    const { email, id } = await accounts.signUp()
    const session = await accounts.signIn(email)
    const made = await accounts.post("keys", { name: "not mine" }, { token: session })
    expect(made.status).toBe(201)
    await accounts.post("forgot", { email })
    await fixture.idle()
    expect(
      (
        await accounts.post("reset", {
          token: fixture.mailedToken(email, "reset"),
          password: "new password",
        })
      ).json,
    ).toMatchObject({ email_verified: true })
    const keys = await fixture.tables
      .selectFrom("accounts_key")
      .select("revoked_at")
      .where("account_id", "=", id)
      .execute()
    expect(keys).toEqual([{ revoked_at: expect.any(Date) }])
    expect((await fixture.auditOf(made.json.id)).map(({ action }) => action)).toEqual([
      "key.create",
      "key.revoke",
    ])
    // keys of a verified account stay valid
    const kept = await accounts.post(
      "keys",
      { name: "mine" },
      { token: await accounts.signIn(email, "new password") },
    )
    await accounts.post("forgot", { email })
    await fixture.idle()
    expect(
      (await accounts.post("reset", { token: fixture.mailedToken(email, "reset"), password }))
        .status,
    ).toBe(200)
    expect(
      await fixture.tables
        .selectFrom("accounts_key")
        .select("revoked_at")
        .where("id", "=", kept.json.id)
        .executeTakeFirst(),
    ).toEqual({ revoked_at: null })
  })

  it("is mailed 3 times in 15 minutes at most, silently, and asked for 20 times a minute of an address", async () => {
    const { email } = await accounts.signUp({ verified: true })
    for (let n = 0; n < 5; n++)
      expect(
        (await accounts.post("forgot", { email }, { address: `192.0.2.${100 + n}` })).status,
      ).toBe(202)
    await fixture.idle()
    expect(
      accounts.mailsTo(email).filter(({ subject }) => subject === "Choose a new password"),
    ).toHaveLength(3)
    const from = { address: "203.0.113.9" }
    for (let n = 0; n < 20; n++)
      expect((await accounts.post("forgot", { email: accounts.newEmail() }, from)).status).toBe(202)
    expect(await accounts.post("forgot", { email }, from)).toMatchObject({
      status: 429,
      json: { code: "rate_limit_error" },
    })
  })

  it("can't be set by a token for something else, too old, or made up, nor to a bad password", async () => {
    const { email, id } = await accounts.signUp()
    await accounts.post("forgot", { email })
    await fixture.idle()
    const [verify, reset] = [
      fixture.mailedToken(email, "verify"),
      fixture.mailedToken(email, "reset"),
    ]
    const before = await accounts.rowOf(email)
    for (const bad of ["short", "x".repeat(201), 12345678, null])
      expect(await accounts.post("reset", { token: reset, password: bad })).toMatchObject({
        status: 400,
        json: { param: "password" },
      })
    for (const bad of [5, null, ["x"], { sha256: reset }])
      expect(await accounts.post("reset", { token: bad, password })).toMatchObject({
        status: 400,
        json: { param: "token" },
      })
    fixture.clock.advance(3_600_000)
    const refusals = [
      await accounts.post("reset", { token: verify, password }),
      await accounts.post("reset", { token: reset, password }),
      await accounts.post("reset", { token: "x", password }),
      await accounts.post("verify-email", { token: reset }),
    ]
    for (const refusal of refusals) expect(refusal).toEqual(refusals[0])
    expect(refusals[0]).toMatchObject({
      status: 400,
      json: { code: "invalid_request_error", param: "token" },
    })
    expect(await accounts.rowOf(email)).toEqual(before)
    expect(
      (await fixture.auditOf(id))
        .filter(({ action }) => action === "token.refuse")
        .map(({ after }) => after),
    ).toEqual([
      { purpose: "reset", reason: "other_purpose" },
      { purpose: "reset", reason: "expired" },
      { purpose: "verify", reason: "other_purpose" },
    ])
  })

  it("is set once by many at once", async () => {
    const { email } = await accounts.signUp()
    await accounts.post("forgot", { email })
    await fixture.idle()
    const token = fixture.mailedToken(email, "reset")
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        accounts.post("reset", { token, password: `password number ${n}` }),
      ),
    )
    const winners = answers.flatMap(({ status }, n) => (status === 200 ? [n] : []))
    expect(winners).toHaveLength(1)
    expect(
      (await accounts.post("login", { email, password: `password number ${winners[0]}` })).status,
    ).toBe(200)
    expect((await accounts.rowOf(email))?.session_epoch).toBe(2)
  })

  it("may be asked for and set while mails and tokens are being made: nothing waits for each other forever", async () => {
    const { email } = await accounts.signUp()
    for (let round = 0; round < 3; round++) {
      await accounts.post("forgot", { email })
      await fixture.idle()
      const token = fixture.mailedToken(email, "reset")
      await Promise.all([
        accounts.post("reset", { token, password }),
        accounts.post("forgot", { email }),
        accounts.post("verify-email", { token: fixture.mailedToken(email, "verify") }),
        accounts.post("signup", { email, password }),
      ])
      await fixture.idle()
      fixture.clock.advance(15 * 60_000)
    }
    expect(fixture.log.lines.filter(({ level }) => level === "error")).toEqual([])
  })
})
