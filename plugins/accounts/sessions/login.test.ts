import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { holdPassword } from "../../../testing/argon2.ts"
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

describe("login", () => {
  it("gives a session of 24 hours, also to who is not verified, or suspended", async () => {
    for (const more of [
      {},
      { verified: true },
      { suspended: true },
      { suspended: true, role: "admin" as const },
    ]) {
      const { email, id } = await accounts.signUp(more)
      const answer = await accounts.post("login", { email, password })
      expect(answer).toMatchObject({ status: 200, headers: { "cache-control": "no-store" } })
      expect(answer.json).toEqual({
        token: expect.any(String),
        expires_at: Math.floor(fixture.clock.nowMs() / 1000) + 86_400,
        account: expect.objectContaining({
          id,
          email,
          email_verified: more.verified === true,
          suspended: more.suspended === true,
          balance_idr: 50_000,
        }),
      })
      expect((await accounts.me(answer.json.token)).json).toEqual(answer.json.account)
    }
  })

  it("refuses a wrong password and an unknown e-mail alike, and remembers it without the e-mail", async () => {
    const { email, id } = await accounts.signUp()
    const unknown = accounts.newEmail()
    const refusals = [
      await accounts.post("login", { email, password: "wrong password" }),
      await accounts.post("login", { email: unknown, password }),
      await accounts.post("login", { email, password: "" }),
    ]
    for (const refusal of refusals) expect(refusal).toEqual(refusals[0])
    expect(refusals[0]).toMatchObject({
      status: 401,
      json: { code: "authentication_error", param: null },
    })
    expect(
      (await fixture.auditOf(id)).filter(({ action }) => action === "login.fail"),
    ).toHaveLength(2)
    const others = await fixture.auditOf("unknown")
    expect(others.at(-1)).toEqual({
      actor: "anonymous",
      action: "login.fail",
      before: null,
      after: null,
    })
    expect(JSON.stringify(others)).not.toContain(unknown)
  })

  it("refuses what is no e-mail or no password", async () => {
    for (const [body, param] of [
      [{ email: "' OR 1=1 --", password }, "email"],
      [{ email: { $ne: null }, password }, "email"],
      [{ email: "a@b.c", password: { $ne: null } }, "password"],
      [{ email: "a@b.c", password: "x".repeat(201) }, "password"],
    ] as const)
      expect(await accounts.post("login", body)).toMatchObject({
        status: 400,
        json: { code: "invalid_request_error", param },
      })
  })
})

describe("failed logins", () => {
  const wrong = { password: "wrong password" }

  it("are 10 a minute of a person at an address; then the right password is refused too, on all servers, and counts as nothing", async () => {
    const other = await fixture.startAgain()
    const { email } = await accounts.signUp()
    const startMs = fixture.clock.nowMs()
    for (let n = 0; n < 10; n++) {
      expect(
        (await (n % 2 ? fixture : other).ask("POST", "/dashboard/login", { email, ...wrong }))
          .status,
      ).toBe(401)
      fixture.clock.advance(1_000)
    }
    for (const server of [fixture, other, fixture])
      for (const secret of [password, wrong.password])
        expect(
          await server.ask("POST", "/dashboard/login", { email, password: secret }),
        ).toMatchObject({ status: 429, json: { code: "rate_limit_error" } })
    expect(
      (await accounts.post("login", { email, password }, { address: "192.0.2.99" })).status,
    ).toBe(200)
    expect(
      (await accounts.post("login", { email: (await accounts.signUp()).email, password })).status,
    ).toBe(200)
    fixture.clock.advance(startMs + 60_000 - fixture.clock.nowMs() - 1)
    expect((await accounts.post("login", { email, password })).status).toBe(429)
    fixture.clock.advance(1)
    expect((await accounts.post("login", { email, ...wrong })).status).toBe(401)
    expect((await accounts.post("login", { email, password })).status).toBe(429)
    fixture.clock.advance(1_000)
    expect((await accounts.post("login", { email, password })).status).toBe(200)
  })

  it("are 10 when they all come at once, and right passwords that come at once are all right", async () => {
    const { email } = await accounts.signUp()
    let count = 0
    let tenthIsRefused = () => {}
    const letGo = holdPassword(password, new Promise((resolve) => (tenthIsRefused = resolve)))
    // the right password is among them, and is checked after the others
    const guesses = [password, ...Array.from({ length: 30 }, () => wrong.password)]
    const guess = async (secret: string): Promise<number> => {
      const { status } = await accounts.post("login", { email, password: secret })
      if (status === 401 && ++count === 10) tenthIsRefused()
      return status
    }
    const statuses = await Promise.all(guesses.map(guess))
    letGo()
    expect(statuses.filter((status) => status === 401)).toHaveLength(10)
    expect(statuses.filter((status) => status === 429)).toHaveLength(21)
    expect(statuses[0]).toBe(429)
    const guest = await accounts.signUp()
    const right = await Promise.all(
      Array.from({ length: 30 }, () =>
        accounts.post("login", { email: guest.email, password }).then(({ status }) => status),
      ),
    )
    expect(new Set(right)).toEqual(new Set([200]))
  })

  it("are 100 a minute of an address, whichever account is tried", async () => {
    const from = { address: "203.0.113.5" }
    const { email } = await accounts.signUp()
    const tries = Array.from({ length: 100 }, (_, n) =>
      accounts.post("login", { email: `nobody${Math.floor(n / 9)}@example.com`, ...wrong }, from),
    )
    expect(new Set((await Promise.all(tries)).map(({ status }) => status))).toEqual(new Set([401]))
    expect((await accounts.post("login", { email, password }, from)).status).toBe(429)
    expect((await accounts.post("login", { email, password })).status).toBe(200)
  })

  it("say when to come again", async () => {
    const { email } = await accounts.signUp()
    for (let n = 0; n < 10; n++) await accounts.post("login", { email, ...wrong })
    fixture.clock.advance(18_500)
    expect((await fixture.failureOf("/dashboard/login", { email, password })).retryAfterMs).toBe(
      41_500,
    )
  })
})

describe("a session", () => {
  it("asks for the verification again, 3 times in 15 minutes at most, and for nothing when it is verified", async () => {
    const { email } = await accounts.signUp()
    const token = await accounts.signIn(email)
    for (let n = 0; n < 5; n++)
      expect(await accounts.post("resend-verification", undefined, { token })).toMatchObject({
        status: 202,
        json: n < 3 ? { sent: true, retry_after: 0 } : { sent: false, retry_after: 15 * 60 },
      })
    expect(accounts.mailsTo(email)).toHaveLength(4)
    expect(
      (await accounts.post("verify-email", { token: fixture.mailedToken(email, "verify") })).status,
    ).toBe(200)
    fixture.clock.advance(15 * 60_000)
    expect(await accounts.post("resend-verification", undefined, { token })).toMatchObject({
      status: 202,
      json: { sent: false, retry_after: 0 },
    })
    expect(accounts.mailsTo(email)).toHaveLength(4)
  })

  it("of a suspended account may read, and change nothing", async () => {
    const { email } = await accounts.signUp({ suspended: true, verified: true, role: "admin" })
    const token = await accounts.signIn(email)
    expect(await accounts.me(token)).toMatchObject({
      status: 200,
      json: { suspended: true, role: "admin" },
    })
    for (const path of ["resend-verification", "keys"])
      expect(await accounts.post(path, { name: "x" }, { token })).toMatchObject({
        status: 403,
        json: { code: "account_suspended" },
      })
    expect(
      (await fixture.ask("DELETE", "/dashboard/keys/{id}", undefined, { token })).json,
    ).toMatchObject({ code: "account_suspended" })
    expect((await fixture.ask("GET", "/dashboard/keys", undefined, { token })).status).toBe(200)
  })

  it("is needed", async () => {
    for (const token of ["", "x", "svc_live_0123456789abcdefghijklmnopqrstuv"]) {
      expect(await accounts.me(token)).toMatchObject({
        status: 401,
        json: { code: "authentication_error" },
      })
      expect((await accounts.post("resend-verification", undefined, { token })).status).toBe(401)
    }
  })
})
