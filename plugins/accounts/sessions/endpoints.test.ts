import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type Answered, type Asking, openSessionHouse, type SessionHouse } from "../test-session-house.ts"

let house: SessionHouse
let person = 0
beforeAll(async () => {
  house = await openSessionHouse()
})
beforeEach(() => house.clock.advance(24 * 3_600_000))
afterAll(() => house?.close())

const password = "correct horse"
const newEmail = () => `person${++person}@example.com`
const post = (path: string, body?: unknown, how?: Asking) => house.ask("POST", `/dashboard/${path}`, body, how)
const me = (token: string) => house.ask("GET", "/dashboard/me", undefined, { token })
const mailsTo = (to: string) => house.mailer.sent.filter((mail) => mail.to === to)
const settled = () => house.idle()
const rowOf = (email: string) => house.tables.selectFrom("accounts_account").selectAll().where("email", "=", email).executeTakeFirst()

/** An account as far as its owner has come with it. */
const signUp = async (more: { readonly verified?: boolean; readonly suspended?: boolean; readonly role?: "admin" } = {}) => {
  const email = newEmail()
  const { json } = await post("signup", { email, password })
  const at = new Date(house.clock.nowMs())
  await house.tables
    .updateTable("accounts_account")
    .set({ ...(more.verified && { verified_at: at }), ...(more.suspended && { suspended_at: at }), role: more.role ?? "user" })
    .where("id", "=", json.id)
    .execute()
  return { id: json.id as string, email }
}
const signIn = async (email: string, secret = password) => (await post("login", { email, password: secret })).json.token as string

/** What is there of a reply, without what differs from account to account. */
const formOf = ({ status, headers, json }: Answered) => ({ status, headers, json: Object.fromEntries(Object.entries(json).map(([name, value]) => [name, typeof value])) })

describe("sign-up", () => {
  it("makes an account with its credit, and mails a link that verifies it, once", async () => {
    const answer = await post("signup", {
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
      balance_idr: 50_000,
      held_idr: 0,
      created_at: Math.floor(house.clock.nowMs() / 1000),
    }
    expect(answer).toMatchObject({ status: 201 })
    expect(answer.json).toEqual(account)
    expect(await rowOf("ada.l@example.com")).toMatchObject({ id: answer.json.id, role: "user", is_first: false, verified_at: null, session_epoch: 1, locale: "en" })
    const token = house.mailedToken("ada.l@example.com", "verify")
    const verified = await post("verify-email", { token })
    expect(verified).toMatchObject({ status: 200 })
    expect(verified.json).toEqual({ ...account, email_verified: true })
    expect(await post("verify-email", { token })).toMatchObject({ status: 400, json: { code: "invalid_request_error", param: "token" } })
    expect((await house.auditOf(answer.json.id)).map(({ actor, action }) => ({ actor, action }))).toEqual([
      { actor: answer.json.id, action: "account.signup" },
      { actor: answer.json.id, action: "account.verify" },
      { actor: "anonymous", action: "token.refuse" },
    ])
    expect(JSON.stringify(await house.auditOf(answer.json.id))).not.toMatch(new RegExp(`${password}|${token}|argon2`))
  })

  it("answers alike when the e-mail has an account, which stays as it is and gets a mail", async () => {
    for (const verified of [false, true]) {
      const { email, id } = await signUp({ verified })
      const before = await rowOf(email)
      const [again, fresh] = [await post("signup", { email: email.toUpperCase(), password: "another password" }), await post("signup", { email: newEmail(), password })]
      expect(formOf(again)).toEqual(formOf(fresh))
      expect(again.json).toMatchObject({ email, role: "user", email_verified: false, balance_idr: 50_000 })
      expect(again.json.id).not.toBe(id)
      expect(await rowOf(email)).toEqual(before)
      expect((await house.billingOf(id)).balanceMicros).toBe(50_000_000_000n)
      expect((await house.billingOf(again.json.id)).balanceMicros).toBe(0n)
      expect(mailsTo(email)).toHaveLength(2)
      expect(mailsTo(email)[1]?.subject).toBe(verified ? "You already have an account" : "Confirm your e-mail address")
      expect((await post("login", { email, password: "another password" })).status).toBe(401)
      if (!verified) expect((await post("verify-email", { token: house.mailedToken(email, "verify") })).json).toMatchObject({ id, email_verified: true })
    }
  })

  it("makes one account of many sign-ups at once", async () => {
    const email = newEmail()
    const answers = await Promise.all(Array.from({ length: 10 }, () => post("signup", { email, password })))
    expect(new Set(answers.map((answer) => JSON.stringify(formOf(answer)))).size).toBe(1)
    const row = await rowOf(email)
    expect(answers.filter(({ json }) => json.id === row?.id)).toHaveLength(1)
    // one of the account, and what the mailbox's limit lets through
    expect(mailsTo(email)).toHaveLength(4)
  })

  it("floods no mailbox", async () => {
    for (const verified of [false, true]) {
      const { email } = await signUp({ verified })
      for (let n = 0; n < 6; n++) expect((await post("signup", { email, password })).status).toBe(201)
      expect(mailsTo(email)).toHaveLength(4)
      house.clock.advance(15 * 60_000)
      await post("signup", { email, password })
      expect(mailsTo(email)).toHaveLength(5)
    }
  })

  it("takes 20 a minute of an address, on all servers together", async () => {
    const other = await house.startAgain()
    const from = { address: "198.51.100.7" }
    const asks = [house.ask, other.ask]
    for (let n = 0; n < 20; n++) expect((await asks[n % 2]!("POST", "/dashboard/signup", { email: newEmail(), password }, from)).status).toBe(201)
    const email = newEmail()
    for (const ask of asks) expect(await ask("POST", "/dashboard/signup", { email, password }, from)).toMatchObject({ status: 429, json: { code: "rate_limit_error" } })
    expect(await rowOf(email)).toBeUndefined()
    expect((await post("signup", { email: newEmail(), password }, { address: "198.51.100.8" })).status).toBe(201)
    house.clock.advance(60_000)
    expect((await post("signup", { email: newEmail(), password }, from)).status).toBe(201)
  })

  it("writes in the language that the browser asks for, and goes on in it", async () => {
    const email = newEmail()
    await post("signup", { email, password }, { languages: "id-ID,id;q=0.9,en;q=0.5" })
    await post("forgot", { email }, { languages: "en" })
    await settled()
    expect(mailsTo(email).map(({ subject }) => subject)).toEqual(["Konfirmasi alamat email Anda", "Buat kata sandi baru"])
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
    const answer = await post("signup", body)
    expect(answer).toMatchObject({ status: 400, json: { code: "invalid_request_error", param: param ?? null } })
    expect(JSON.stringify(answer.json).length).toBeLessThan(200)
    expect(await rowOf("a@b.c")).toBeUndefined()
  })

  it("takes SQL where it is a legal address, as text", async () => {
    const email = "o'brien--drop@example.com"
    expect((await post("signup", { email, password: "'; DELETE FROM accounts_account; --\u0000" })).status).toBe(201)
    expect(await signIn(email, "'; DELETE FROM accounts_account; --\u0000")).toMatch(/\./)
  })
})

describe("login", () => {
  it("gives a session of 24 hours, also to who is not verified, or suspended", async () => {
    for (const more of [{}, { verified: true }, { suspended: true }, { suspended: true, role: "admin" as const }]) {
      const { email, id } = await signUp(more)
      const answer = await post("login", { email, password })
      expect(answer).toMatchObject({ status: 200, headers: { "cache-control": "no-store" } })
      expect(answer.json).toEqual({
        token: expect.any(String),
        expires_at: Math.floor(house.clock.nowMs() / 1000) + 86_400,
        account: expect.objectContaining({ id, email, email_verified: more.verified === true, suspended: more.suspended === true, balance_idr: 50_000 }),
      })
      expect((await me(answer.json.token)).json).toEqual(answer.json.account)
    }
  })

  it("refuses a wrong password and an unknown e-mail alike, and remembers it without the e-mail", async () => {
    const { email, id } = await signUp()
    const unknown = newEmail()
    const refusals = [await post("login", { email, password: "wrong password" }), await post("login", { email: unknown, password }), await post("login", { email, password: "" })]
    for (const refusal of refusals) expect(refusal).toEqual(refusals[0])
    expect(refusals[0]).toMatchObject({ status: 401, json: { code: "authentication_error", param: null } })
    expect((await house.auditOf(id)).filter(({ action }) => action === "login.fail")).toHaveLength(2)
    const others = await house.auditOf("unknown")
    expect(others.at(-1)).toEqual({ actor: "anonymous", action: "login.fail", before: null, after: null })
    expect(JSON.stringify(others)).not.toContain(unknown)
  })

  it("refuses what is no e-mail or no password", async () => {
    for (const [body, param] of [
      [{ email: "' OR 1=1 --", password }, "email"],
      [{ email: { $ne: null }, password }, "email"],
      [{ email: "a@b.c", password: { $ne: null } }, "password"],
      [{ email: "a@b.c", password: "x".repeat(201) }, "password"],
    ] as const)
      expect(await post("login", body)).toMatchObject({ status: 400, json: { code: "invalid_request_error", param } })
  })
})

describe("failed logins", () => {
  const wrong = { password: "wrong password" }

  it("are 10 a minute of a person at an address; then the right password is refused too, on all servers, and counts as nothing", async () => {
    const other = await house.startAgain()
    const { email } = await signUp()
    const startMs = house.clock.nowMs()
    for (let n = 0; n < 10; n++) {
      expect((await (n % 2 ? house : other).ask("POST", "/dashboard/login", { email, ...wrong })).status).toBe(401)
      house.clock.advance(1_000)
    }
    for (const server of [house, other, house])
      for (const secret of [password, wrong.password])
        expect(await server.ask("POST", "/dashboard/login", { email, password: secret })).toMatchObject({ status: 429, json: { code: "rate_limit_error" } })
    expect((await post("login", { email, password }, { address: "192.0.2.99" })).status).toBe(200)
    expect((await post("login", { email: (await signUp()).email, password })).status).toBe(200)
    house.clock.advance(startMs + 60_000 - house.clock.nowMs() - 1)
    expect((await post("login", { email, password })).status).toBe(429)
    house.clock.advance(1)
    expect((await post("login", { email, ...wrong })).status).toBe(401)
    expect((await post("login", { email, password })).status).toBe(429)
    house.clock.advance(1_000)
    expect((await post("login", { email, password })).status).toBe(200)
  })

  it("are 10 when they all come at once, and right passwords that come at once are all right", async () => {
    const [{ email }, guest] = [await signUp(), await signUp()]
    const statuses = await Promise.all(Array.from({ length: 30 }, () => post("login", { email, ...wrong }).then(({ status }) => status)))
    expect(statuses.filter((status) => status === 401)).toHaveLength(10)
    expect(statuses.filter((status) => status === 429)).toHaveLength(20)
    const right = await Promise.all(Array.from({ length: 30 }, () => post("login", { email: guest.email, password }).then(({ status }) => status)))
    expect(new Set(right)).toEqual(new Set([200]))
  })

  it("are 100 a minute of an address, whoever is tried", async () => {
    const from = { address: "203.0.113.5" }
    const { email } = await signUp()
    const tries = Array.from({ length: 100 }, (_, n) => post("login", { email: `nobody${Math.floor(n / 9)}@example.com`, ...wrong }, from))
    expect(new Set((await Promise.all(tries)).map(({ status }) => status))).toEqual(new Set([401]))
    expect((await post("login", { email, password }, from)).status).toBe(429)
    expect((await post("login", { email, password })).status).toBe(200)
  })

  it("say when to come again", async () => {
    const { email } = await signUp()
    for (let n = 0; n < 10; n++) await post("login", { email, ...wrong })
    house.clock.advance(18_500)
    expect((await house.failureOf("/dashboard/login", { email, password })).retryAfterMs).toBe(41_500)
  })
})

describe("a forgotten password", () => {
  it("is replaced by a link that works once, which ends all sessions and tells the owner", async () => {
    const { email, id } = await signUp({ verified: true })
    const other = await house.startAgain()
    const old = await signIn(email)
    expect((await other.ask("GET", "/dashboard/me", undefined, { token: old })).status).toBe(200)
    expect(await post("forgot", { email })).toEqual({ status: 202, headers: {}, json: {}, events: [], costMicros: undefined })
    await settled()
    const token = house.mailedToken(email, "reset")
    expect(await post("reset", { token, password: "new password" })).toMatchObject({ status: 200, json: { id, object: "account", email_verified: true } })
    expect((await me(old)).status).toBe(401)
    house.clock.advance(3_000)
    expect((await other.ask("GET", "/dashboard/me", undefined, { token: old })).status).toBe(401)
    expect((await post("login", { email, password })).status).toBe(401)
    expect((await me(await signIn(email, "new password"))).status).toBe(200)
    expect(await post("reset", { token, password: "newer password" })).toMatchObject({ status: 400, json: { param: "token" } })
    expect(mailsTo(email).at(-1)?.subject).toBe("Your password was changed")
    expect((await house.auditOf(id)).map(({ action }) => action)).toEqual(["account.signup", "account.forgot", "account.reset", "login.fail", "token.refuse"])
  })

  it("is answered alike, and at once, when nobody has the e-mail", async () => {
    const { email } = await signUp()
    const unknown = newEmail()
    const rows = () => house.tables.selectFrom("accounts_token").select("purpose").where("purpose", "=", "reset").execute()
    const before = (await rows()).length
    expect(await post("forgot", { email: unknown })).toEqual(await post("forgot", { email }))
    await settled()
    expect(await rows()).toHaveLength(before + 1)
    expect(mailsTo(unknown)).toEqual([])
    for (const body of [{}, { email: 1 }, { email: "no address" }, { email: "a@b.c\r\nBcc: x@y.z" }]) expect((await post("forgot", body)).status).toBe(400)
  })

  it("verifies the account, and revokes what keys somebody else may have made before", async () => {
    const { email, id } = await signUp()
    const session = await signIn(email)
    const made = await post("keys", { name: "not mine" }, { token: session })
    expect(made.status).toBe(201)
    await post("forgot", { email })
    await settled()
    expect((await post("reset", { token: house.mailedToken(email, "reset"), password: "new password" })).json).toMatchObject({ email_verified: true })
    const keys = await house.tables.selectFrom("accounts_key").select("revoked_at").where("account_id", "=", id).execute()
    expect(keys).toEqual([{ revoked_at: expect.any(Date) }])
    expect((await house.auditOf(made.json.id)).map(({ action }) => action)).toEqual(["key.create", "key.revoke"])
    // of a verified account they stay
    const kept = await post("keys", { name: "mine" }, { token: await signIn(email, "new password") })
    await post("forgot", { email })
    await settled()
    expect((await post("reset", { token: house.mailedToken(email, "reset"), password })).status).toBe(200)
    expect(await house.tables.selectFrom("accounts_key").select("revoked_at").where("id", "=", kept.json.id).executeTakeFirst()).toEqual({ revoked_at: null })
  })

  it("is mailed 3 times in 15 minutes at most, silently, and asked for 20 times a minute of an address", async () => {
    const { email } = await signUp({ verified: true })
    for (let n = 0; n < 5; n++) expect((await post("forgot", { email }, { address: `192.0.2.${100 + n}` })).status).toBe(202)
    await settled()
    expect(mailsTo(email).filter(({ subject }) => subject === "Choose a new password")).toHaveLength(3)
    const from = { address: "203.0.113.9" }
    for (let n = 0; n < 20; n++) expect((await post("forgot", { email: newEmail() }, from)).status).toBe(202)
    expect(await post("forgot", { email }, from)).toMatchObject({ status: 429, json: { code: "rate_limit_error" } })
  })

  it("can't be set by a token for something else, too old, or made up, nor to a bad password", async () => {
    const { email, id } = await signUp()
    await post("forgot", { email })
    await settled()
    const [verify, reset] = [house.mailedToken(email, "verify"), house.mailedToken(email, "reset")]
    const before = await rowOf(email)
    for (const bad of ["short", "x".repeat(201), 12345678, null])
      expect(await post("reset", { token: reset, password: bad })).toMatchObject({ status: 400, json: { param: "password" } })
    for (const bad of [5, null, ["x"], { sha256: reset }]) expect(await post("reset", { token: bad, password })).toMatchObject({ status: 400, json: { param: "token" } })
    house.clock.advance(3_600_000)
    const refusals = [
      await post("reset", { token: verify, password }),
      await post("reset", { token: reset, password }),
      await post("reset", { token: "x", password }),
      await post("verify-email", { token: reset }),
    ]
    for (const refusal of refusals) expect(refusal).toEqual(refusals[0])
    expect(refusals[0]).toMatchObject({ status: 400, json: { code: "invalid_request_error", param: "token" } })
    expect(await rowOf(email)).toEqual(before)
    expect((await house.auditOf(id)).filter(({ action }) => action === "token.refuse").map(({ after }) => after)).toEqual([
      { purpose: "reset", reason: "other_purpose" },
      { purpose: "reset", reason: "expired" },
      { purpose: "verify", reason: "other_purpose" },
    ])
  })

  it("is set once by many at once", async () => {
    const { email } = await signUp()
    await post("forgot", { email })
    await settled()
    const token = house.mailedToken(email, "reset")
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => post("reset", { token, password: `password number ${n}` })))
    const winners = answers.flatMap(({ status }, n) => (status === 200 ? [n] : []))
    expect(winners).toHaveLength(1)
    expect((await post("login", { email, password: `password number ${winners[0]}` })).status).toBe(200)
    expect((await rowOf(email))?.session_epoch).toBe(2)
  })

  it("may be asked for and set while mails and tokens are being made: nothing waits for each other forever", async () => {
    const { email } = await signUp()
    for (let round = 0; round < 3; round++) {
      await post("forgot", { email })
      await settled()
      const token = house.mailedToken(email, "reset")
      await Promise.all([
        post("reset", { token, password }),
        post("forgot", { email }),
        post("verify-email", { token: house.mailedToken(email, "verify") }),
        post("signup", { email, password }),
      ])
      await settled()
      house.clock.advance(15 * 60_000)
    }
    expect(house.log.lines.filter(({ level }) => level === "error")).toEqual([])
  })
})

describe("a session", () => {
  it("asks for the verification again, 3 times in 15 minutes at most, and for nothing when it is verified", async () => {
    const { email } = await signUp()
    const token = await signIn(email)
    for (let n = 0; n < 5; n++) expect(await post("resend-verification", undefined, { token })).toMatchObject({ status: 202, json: {} })
    expect(mailsTo(email)).toHaveLength(4)
    expect((await post("verify-email", { token: house.mailedToken(email, "verify") })).status).toBe(200)
    house.clock.advance(15 * 60_000)
    expect((await post("resend-verification", undefined, { token })).status).toBe(202)
    expect(mailsTo(email)).toHaveLength(4)
  })

  it("of a suspended account may read, and change nothing", async () => {
    const { email } = await signUp({ suspended: true, verified: true, role: "admin" })
    const token = await signIn(email)
    expect(await me(token)).toMatchObject({ status: 200, json: { suspended: true, role: "admin" } })
    for (const path of ["resend-verification", "keys"]) expect(await post(path, { name: "x" }, { token })).toMatchObject({ status: 403, json: { code: "account_suspended" } })
    expect((await house.ask("DELETE", "/dashboard/keys/{id}", undefined, { token })).json).toMatchObject({ code: "account_suspended" })
    expect((await house.ask("GET", "/dashboard/keys", undefined, { token })).status).toBe(200)
  })

  it("is needed", async () => {
    for (const token of ["", "x", "svc_live_0123456789abcdefghijklmnopqrstuv"]) {
      expect(await me(token)).toMatchObject({ status: 401, json: { code: "authentication_error" } })
      expect((await post("resend-verification", undefined, { token })).status).toBe(401)
    }
  })
})
