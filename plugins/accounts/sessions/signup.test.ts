import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { accountsOf, formOf, password } from "../testing/accounts.ts"
import { openSessionFixture, type SessionFixture } from "../testing/session-fixture.ts"

let fixture: SessionFixture
let accounts: ReturnType<typeof accountsOf>
beforeAll(async () => {
  fixture = await openSessionFixture()
  accounts = accountsOf(fixture)
})
beforeEach(() => fixture.clock.advance(24 * 3_600_000))
afterAll(() => fixture?.close())

describe("sign-up", () => {
  it("makes an account with its credit, and mails a link that verifies it, once", async () => {
    const answer = await accounts.post("signup", {
      email: " Ada.L@Example.COM ",
      password,
      role: "admin",
      balance_idr: 1e9,
      email_verified: true,
      id: "acct_mine",
      suspended: false,
      is_first: true,
    })
    const account = {
      id: expect.stringMatching(/^acct_\w{24}$/),
      object: "account",
      email: "ada.l@example.com",
      role: "user",
      email_verified: false,
      suspended: false,
      two_factor: false,
      low_balance_idr: null,
      balance_idr: 50_000,
      held_idr: 0,
      created_at: Math.floor(fixture.clock.nowMs() / 1000),
    }
    expect(answer).toMatchObject({ status: 201 })
    expect(answer.json).toEqual(account)
    expect(await accounts.rowOf("ada.l@example.com")).toMatchObject({
      id: answer.json.id,
      role: "user",
      is_first: false,
      verified_at: null,
      session_epoch: 1,
      locale: "en",
    })
    const token = fixture.mailedToken("ada.l@example.com", "verify")
    const verified = await accounts.post("verify-email", { token })
    expect(verified).toMatchObject({ status: 200 })
    expect(verified.json).toEqual({ ...account, email_verified: true })
    expect(await accounts.post("verify-email", { token })).toMatchObject({
      status: 200,
      json: { email: "ada.l@example.com", email_verified: true, already_verified: true },
    })
    expect(
      (await fixture.auditOf(answer.json.id)).map(({ actor, action }) => ({ actor, action })),
    ).toEqual([
      { actor: answer.json.id, action: "account.signup" },
      { actor: answer.json.id, action: "account.verify" },
    ])
    expect(JSON.stringify(await fixture.auditOf(answer.json.id))).not.toMatch(
      new RegExp(`${password}|${token}|argon2`),
    )
  })

  it("takes a link twice only while it would be valid, and only for what it was mailed for", async () => {
    const { email } = await accounts.signUp({ verified: true })
    const token = fixture.mailedToken(email, "verify")
    const again = () => accounts.post("verify-email", { token })
    expect((await again()).json.already_verified).toBe(undefined)
    expect(await again()).toMatchObject({ status: 200, json: { already_verified: true } })
    await accounts.post("forgot", { email })
    await fixture.idle()
    const reset = fixture.mailedToken(email, "reset")
    await accounts.post("reset", { token: reset, password })
    expect((await accounts.post("verify-email", { token: reset })).status).toBe(400)
    fixture.clock.advance(48 * 3_600_000)
    expect(await again()).toMatchObject({ status: 400, json: { param: "token" } })
  })

  const signUpAgain = async (email: string, by: string) => {
    const [again, fresh] = [
      await accounts.post("signup", { email: email.toUpperCase(), password: by }),
      await accounts.post("signup", { email: accounts.newEmail(), password }),
    ]
    expect(formOf(again)).toEqual(formOf(fresh))
    expect(again.json).toMatchObject({
      email,
      role: "user",
      email_verified: false,
      balance_idr: 50_000,
    })
    expect((await fixture.billingOf(again.json.id)).balanceMicros).toBe(0n)
    expect(accounts.mailsTo(email)).toHaveLength(2)
    return { id: again.json.id, subject: accounts.mailsTo(email)[1]?.subject }
  }

  it.each([
    [true, "another password", "You already have an account"],
    [true, password, "You already have an account"],
    [false, password, "Confirm your e-mail address"],
  ])(
    "answers alike when the e-mail has an account, which stays as it is and gets a mail (verified: %s, %s)",
    async (verified, by, wanted) => {
      const { email, id } = await accounts.signUp({ verified })
      const before = await accounts.rowOf(email)
      const again = await signUpAgain(email, by)
      expect(again.id).not.toBe(id)
      expect(again.subject).toBe(wanted)
      expect(await accounts.rowOf(email)).toEqual(before)
      expect((await fixture.billingOf(id)).balanceMicros).toBe(50_000_000_000n)
      if (by !== password)
        expect((await accounts.post("login", { email, password: by })).status).toBe(401)
      if (!verified)
        expect(
          (await accounts.post("verify-email", { token: fixture.mailedToken(email, "verify") }))
            .json,
        ).toMatchObject({ id, email_verified: true })
    },
  )

  it("voids what a stranger made of an address, when its owner signs up", async () => {
    const { email, id } = await accounts.signUp({ verified: false })
    const token = await accounts.signIn(email)
    await accounts.post("keys", { name: "theirs" }, { token })
    const verify = fixture.mailedToken(email, "verify")
    await signUpAgain(email, "the owner's password")
    // neither password is good, nor is the link of the first mail, nor the session
    for (const by of [password, "the owner's password"])
      expect((await accounts.post("login", { email, password: by })).status).toBe(401)
    expect((await accounts.post("verify-email", { token: verify })).status).toBe(400)
    expect((await fixture.ask("GET", "/dashboard/me", undefined, { token })).status).toBe(401)
    const reset = { token: fixture.mailedToken(email, "reset"), password: "chosen by the owner" }
    expect((await accounts.post("reset", reset)).json).toMatchObject({ id, email_verified: true })
    const own = await accounts.signIn(email, "chosen by the owner")
    const { json } = await fixture.ask("GET", "/dashboard/keys", undefined, { token: own })
    expect(json.data).toMatchObject([{ name: "theirs", revoked_at: expect.any(Number) }])
  })

  it("makes one account of many sign-ups at once", async () => {
    const email = accounts.newEmail()
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => accounts.post("signup", { email, password })),
    )
    expect(new Set(answers.map((answer) => JSON.stringify(formOf(answer)))).size).toBe(1)
    const row = await accounts.rowOf(email)
    expect(answers.filter(({ json }) => json.id === row?.id)).toHaveLength(1)
    // the first mail of the account, and those that the limit of the mailbox allows
    expect(accounts.mailsTo(email)).toHaveLength(4)
  })

  it("floods no mailbox", async () => {
    for (const verified of [false, true]) {
      const { email } = await accounts.signUp({ verified })
      for (let n = 0; n < 6; n++)
        expect((await accounts.post("signup", { email, password })).status).toBe(201)
      expect(accounts.mailsTo(email)).toHaveLength(4)
      fixture.clock.advance(15 * 60_000)
      await accounts.post("signup", { email, password })
      expect(accounts.mailsTo(email)).toHaveLength(5)
    }
  })

  it("takes 20 a minute of an address, on all servers together", async () => {
    const other = await fixture.startAgain()
    const from = { address: "198.51.100.7" }
    const asks = [fixture.ask, other.ask]
    for (let n = 0; n < 20; n++)
      expect(
        (
          await asks[n % 2]!(
            "POST",
            "/dashboard/signup",
            { email: accounts.newEmail(), password },
            from,
          )
        ).status,
      ).toBe(201)
    const email = accounts.newEmail()
    for (const ask of asks)
      expect(await ask("POST", "/dashboard/signup", { email, password }, from)).toMatchObject({
        status: 429,
        json: { code: "rate_limit_error" },
      })
    expect(await accounts.rowOf(email)).toBeUndefined()
    expect(
      (
        await accounts.post(
          "signup",
          { email: accounts.newEmail(), password },
          { address: "198.51.100.8" },
        )
      ).status,
    ).toBe(201)
    fixture.clock.advance(60_000)
    expect(
      (await accounts.post("signup", { email: accounts.newEmail(), password }, from)).status,
    ).toBe(201)
  })

  it("writes in the language that the browser asks for, and goes on in it", async () => {
    const email = accounts.newEmail()
    await accounts.post("signup", { email, password }, { languages: "id-ID,id;q=0.9,en;q=0.5" })
    await accounts.post("forgot", { email }, { languages: "en" })
    await fixture.idle()
    expect(accounts.mailsTo(email).map(({ subject }) => subject)).toEqual([
      "Konfirmasi alamat email Anda",
      "Buat kata sandi baru",
    ])
  })

  it.each([
    ["no body", undefined, undefined],
    ["an array", [], undefined],
    ["no e-mail", { password }, "email"],
    ["a null e-mail", { email: null, password }, "email"],
    ["an e-mail of a wrong type", { email: 5, password }, "email"],
    ["e-mails in an array", { email: ["a@b.c"], password }, "email"],
    ["no address", { email: "nobody", password }, "email"],
    ["a header in it", { email: "a@b.c\r\nBcc: all@example.com", password }, "email"],
    ["another person in it", { email: "a@b.c,d@e.f", password }, "email"],
    ["a name before it", { email: "Ada <a@b.c>", password }, "email"],
    ["SQL in it", { email: "a'; DROP TABLE accounts_account; --@b.c", password }, "email"],
    ["a NUL in it", { email: "a\u0000@b.c", password }, "email"],
    ["a huge e-mail", { email: `${"a".repeat(1_000_000)}@b.c`, password }, "email"],
    ["no password", { email: "a@b.c" }, "password"],
    ["a password of a wrong type", { email: "a@b.c", password: 12345678 }, "password"],
    ["a short password", { email: "a@b.c", password: "1234567" }, "password"],
    ["a short password of many bytes", { email: "a@b.c", password: "🔑".repeat(7) }, "password"],
    ["a huge password", { email: "a@b.c", password: "x".repeat(201) }, "password"],
    ["a gigantic password", { email: "a@b.c", password: "x".repeat(900_000) }, "password"],
  ])("refuses %s", async (_, body, param) => {
    const answer = await accounts.post("signup", body)
    expect(answer).toMatchObject({
      status: 400,
      json: { code: "invalid_request_error", param: param ?? null },
    })
    expect(JSON.stringify(answer.json).length).toBeLessThan(200)
    expect(await accounts.rowOf("a@b.c")).toBeUndefined()
  })

  it("takes SQL where it is a legal address, as text", async () => {
    const email = "o'brien--drop@example.com"
    expect(
      (
        await accounts.post("signup", {
          email,
          password: "'; DELETE FROM accounts_account; --\u0000",
        })
      ).status,
    ).toBe(201)
    expect(await accounts.signIn(email, "'; DELETE FROM accounts_account; --\u0000")).toMatch(/\./)
  })
})
