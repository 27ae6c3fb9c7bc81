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

const wrong = { status: 400, json: { code: "invalid_request_error", param: "current_password" } }
const signedIn = async (more: Parameters<typeof accounts.signUp>[0] = { verified: true }) => {
  const { email, id } = await accounts.signUp(more)
  return { email, id, token: await accounts.signIn(email) }
}
const actions = async (id: string) => (await fixture.auditOf(id)).map(({ action }) => action)

describe("a new password", () => {
  it("needs the old one, ends the other sessions, and goes on in a new one", async () => {
    const { email, id, token } = await signedIn()
    const other = await accounts.signIn(email)
    const change = (current_password: string) =>
      accounts.post("password", { current_password, password: "a new password" }, { token })
    expect(await change("not the password")).toMatchObject(wrong)
    expect((await accounts.me(other)).status).toBe(200)
    const changed = await change(password)
    expect(changed).toMatchObject({ status: 200, headers: { "cache-control": "no-store" } })
    expect((await accounts.me(changed.json.token)).json).toMatchObject({ id, email })
    for (const ended of [token, other]) expect((await accounts.me(ended)).status).toBe(401)
    expect((await accounts.post("login", { email, password })).status).toBe(401)
    expect(await accounts.signIn(email, "a new password")).toMatch(/\./)
    expect(accounts.mailsTo(email).at(-1)?.subject).toBe("Your password was changed")
    expect(await actions(id)).toEqual(expect.arrayContaining(["password.fail", "account.password"]))
    expect(JSON.stringify(await fixture.auditOf(id))).not.toMatch(/a new password|argon2/)
  })

  it("can't be guessed through a session: wrong ones count as those of sign-in", async () => {
    const { email, token } = await signedIn()
    const guess = (current_password: string) =>
      accounts.post("password", { current_password, password: "a new password" }, { token })
    for (let n = 0; n < 10; n++) expect(await guess(`guess ${n}`)).toMatchObject(wrong)
    expect((await guess(password)).status).toBe(429)
    expect((await accounts.post("login", { email, password })).status).toBe(429)
    fixture.clock.advance(60_000)
    expect((await guess(password)).status).toBe(200)
  })

  it("is set once by two who ask at once", async () => {
    const { token } = await signedIn()
    const answers = await Promise.all(
      ["the first new one", "the second new one"].map((next) =>
        accounts.post("password", { current_password: password, password: next }, { token }),
      ),
    )
    // the other one was checked before (409) or after (400)
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.every(({ status }) => [200, 400, 409].includes(status))).toBe(true)
  })

  it.each([
    ["no password", { current_password: password }, "password"],
    ["a short password", { current_password: password, password: "short" }, "password"],
    ["no old one", { password: "a new password" }, "current_password"],
    ["a huge old one", { current_password: "x".repeat(201), password }, "current_password"],
  ])("refuses %s", async (_, body, param) => {
    const { token } = await signedIn()
    expect(await accounts.post("password", body, { token })).toMatchObject({
      status: 400,
      json: { param },
    })
  })
})

it("ends all other sessions", async () => {
  const { email, token } = await signedIn()
  const other = await accounts.signIn(email)
  const end = (current_password: string) =>
    accounts.post("end-sessions", { current_password }, { token })
  expect(await end("not the password")).toMatchObject(wrong)
  const next = await end(password)
  expect((await accounts.me(next.json.token)).status).toBe(200)
  for (const ended of [token, other]) expect((await accounts.me(ended)).status).toBe(401)
})

describe("a new e-mail address", () => {
  const ask = (token: string, email: string, current_password = password) =>
    accounts.post("email", { email, current_password }, { token })
  const confirm = (token: string) => accounts.post("confirm-email", { token })

  it("is confirmed by a mail to it; the old one gets a notice, and its links are void", async () => {
    const { email, id, token } = await signedIn()
    await accounts.post("forgot", { email })
    await fixture.idle()
    const reset = fixture.mailedToken(email, "reset")
    const verify = fixture.mailedToken(email, "verify")
    const next = accounts.newEmail()
    expect(await ask(token, next, "not the password")).toMatchObject(wrong)
    expect(await ask(token, next.toUpperCase())).toMatchObject({ status: 202, json: {} })
    expect((await accounts.me(token)).json.email).toBe(email)
    const mailed = fixture.mailedToken(next, "email")
    expect(await confirm(mailed)).toMatchObject({ status: 200, json: { id, email: next } })
    expect((await confirm(mailed)).json).toMatchObject({ email: next, already_verified: true })
    expect((await accounts.me(token)).json.email).toBe(next)
    expect(accounts.mailsTo(email).at(-1)?.subject).toBe("Your e-mail address was changed")
    expect((await accounts.post("login", { email, password })).status).toBe(401)
    expect((await accounts.post("reset", { token: reset, password })).status).toBe(400)
    expect((await accounts.post("verify-email", { token: verify })).status).toBe(400)
    expect(await accounts.signIn(next)).toMatch(/\./)
    expect((await fixture.auditOf(id)).at(-1)).toMatchObject({
      action: "account.email",
      before: { email },
      after: { email: next },
    })
  })

  it("reveals nobody: for an address with an account the reply is the same, and its owner gets a mail", async () => {
    const [{ token, id }, other] = [await signedIn(), await signedIn()]
    const fresh = accounts.newEmail()
    expect(await ask(token, other.email)).toEqual(await ask(token, fresh))
    expect(accounts.mailsTo(other.email).at(-1)?.subject).toBe("You already have an account")
    expect((await fixture.auditOf(id)).at(-1)).toMatchObject({ action: "account.ask_email" })
    // somebody signs up with it before the link is opened
    await accounts.post("signup", { email: fresh, password })
    expect(await confirm(fixture.mailedToken(fresh, "email"))).toMatchObject({
      status: 400,
      json: { param: "token" },
    })
    expect((await accounts.rowOf(fresh))?.id).not.toBe(id)
  })

  it("floods no mailbox, and a token serves one purpose", async () => {
    const { email, token } = await signedIn()
    const next = accounts.newEmail()
    for (let n = 0; n < 5; n++) expect((await ask(token, next)).status).toBe(202)
    expect(accounts.mailsTo(next)).toHaveLength(3)
    const mailed = fixture.mailedToken(next, "email")
    expect((await accounts.post("verify-email", { token: mailed })).status).toBe(400)
    expect((await confirm(fixture.mailedToken(email, "verify"))).status).toBe(400)
    expect(await ask(token, email)).toMatchObject({ status: 400, json: { param: "email" } })
    fixture.clock.advance(48 * 3_600_000)
    expect((await confirm(mailed)).status).toBe(400)
  })
})

describe("a deleted account", () => {
  it("is gone for its owner, and stays as a row for the ledger", async () => {
    const { email, id, token } = await signedIn()
    const key = await fixture.ask("POST", "/dashboard/keys", { name: "k" }, { token })
    const next = accounts.newEmail()
    await accounts.post("email", { email: next, current_password: password }, { token })
    const remove = (current_password: string) =>
      accounts.post("delete-account", { current_password }, { token })
    expect(await remove("not the password")).toMatchObject(wrong)
    expect(await remove(password)).toMatchObject({ status: 200, json: {} })
    expect((await accounts.me(token)).status).toBe(401)
    expect((await accounts.post("login", { email, password })).status).toBe(401)
    const rows = fixture.tables.selectFrom("accounts_account").selectAll().where("id", "=", id)
    expect(await rows.executeTakeFirst()).toMatchObject({
      email: `deleted-${id.toLowerCase()}@deleted.invalid`,
      role: "user",
      deleted_at: new Date(fixture.clock.nowMs()),
    })
    const keys = fixture.tables.selectFrom("accounts_key").selectAll()
    expect(await keys.where("id", "=", key.json.id).executeTakeFirst()).toMatchObject({
      revoked_at: new Date(fixture.clock.nowMs()),
    })
    expect((await fixture.billingOf(id)).balanceMicros).toBe(50_000_000_000n)
    expect(accounts.mailsTo(email).at(-1)?.subject).toBe("Your account was deleted")
    // a link that was mailed before brings it back to nobody
    const mailed = fixture.mailedToken(next, "email")
    expect((await accounts.post("confirm-email", { token: mailed })).status).toBe(400)
    // the address is free again
    expect((await accounts.post("signup", { email, password })).status).toBe(201)
    expect((await accounts.rowOf(email))?.id).not.toBe(id)
  })

  it("is never the first account", async () => {
    const { id, token } = await signedIn()
    const first = fixture.tables.updateTable("accounts_account").set({ is_first: true })
    await first.where("id", "=", id).execute()
    expect(
      await accounts.post("delete-account", { current_password: password }, { token }),
    ).toMatchObject({ status: 409, json: { code: "conflict" } })
  })
})
