import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { accountsOf, password } from "../testing/accounts.ts"
import { openSessionFixture, type SessionFixture } from "../testing/session-fixture.ts"
import { totpAt } from "./totp.ts"

let fixture: SessionFixture
let accounts: ReturnType<typeof accountsOf>
beforeAll(async () => {
  fixture = await openSessionFixture()
  accounts = accountsOf(fixture)
})
beforeEach(() => fixture.clock.advance(24 * 3_600_000))
afterAll(() => fixture?.close())

const codeOf = (secret: string) => totpAt(secret, fixture.clock.nowMs())
const logIn = (email: string, code?: string, address?: string) =>
  accounts.post(
    "login",
    { email, password, ...(code !== undefined && { code }) },
    { ...(address && { address }) },
  )
const begin = (token: string, current_password = password) =>
  accounts.post("two-factor", { current_password }, { token })
const confirm = (token: string, code: string) =>
  accounts.post("two-factor/confirm", { code }, { token })
const refused = (status: number) => ({ status, json: { param: "code" } })

const signedIn = async () => {
  const { email, id } = await accounts.signUp({ verified: true })
  return { email, id, token: await accounts.signIn(email) }
}
const withTwoFactors = async () => {
  const own = await signedIn()
  const { json } = await begin(own.token)
  const confirmed = await confirm(own.token, codeOf(json.secret))
  // the next code
  fixture.clock.advance(30_000)
  return { ...own, secret: json.secret as string, codes: confirmed.json.recovery_codes as string[] }
}

describe("a second factor", () => {
  it("counts once a code has confirmed it, and then at every sign-in", async () => {
    const { email, id, token } = await signedIn()
    expect(await begin(token, "not the password")).toMatchObject({
      status: 400,
      json: { param: "current_password" },
    })
    expect((await confirm(token, "123456")).status).toBe(409)
    const { json, headers } = await begin(token)
    expect(headers["cache-control"]).toBe("no-store")
    expect(json.url).toContain(`otpauth://totp/test:${encodeURIComponent(email)}?`)
    expect((await logIn(email)).status).toBe(200)
    expect(await confirm(token, "000000")).toMatchObject(refused(400))
    expect((await accounts.me(token)).json.two_factor).toBe(false)
    expect((await confirm(token, codeOf(json.secret))).json.recovery_codes).toHaveLength(10)
    expect((await accounts.me(token)).json.two_factor).toBe(true)
    expect((await begin(token)).status).toBe(409)

    fixture.clock.advance(30_000)
    expect(await logIn(email)).toMatchObject(refused(401))
    expect(await logIn(email, "000000")).toMatchObject(refused(401))
    expect((await logIn(email, codeOf(json.secret))).status).toBe(200)
    const log = await fixture.auditOf(id)
    expect(log.map(({ action }) => action)).toContain("account.two_factor")
    const row = await accounts.rowOf(email)
    expect(`${JSON.stringify(log)} ${row?.totp_secret}`).not.toContain(json.secret)
  })

  it("takes each code once, also when two use it at the same time", async () => {
    const { email, secret } = await withTwoFactors()
    const code = codeOf(secret)
    const answers = await Promise.all([logIn(email, code), logIn(email, code)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401])
    expect((await logIn(email, code)).status).toBe(401)
    fixture.clock.advance(30_000)
    expect((await logIn(email, codeOf(secret))).status).toBe(200)
    // an older one than the last is worth nothing, though its time is not over
    expect((await logIn(email, totpAt(secret, fixture.clock.nowMs() - 30_000))).status).toBe(401)
  })

  it("takes each recovery code once", async () => {
    const { email, codes } = await withTwoFactors()
    const answers = await Promise.all(codes.slice(0, 2).map((code) => logIn(email, code)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect((await logIn(email, codes[0])).status).toBe(401)
    expect((await logIn(email, codes[9]?.toUpperCase().replaceAll("-", " "))).status).toBe(200)
  })

  it("can't be guessed: wrong codes count as wrong passwords do", async () => {
    const { email, secret } = await withTwoFactors()
    for (let n = 0; n < 10; n++) expect((await logIn(email, "000000")).status).toBe(401)
    expect((await logIn(email, codeOf(secret))).status).toBe(429)
    fixture.clock.advance(15 * 60_000)
    expect((await logIn(email, codeOf(secret))).status).toBe(200)
  })

  it("can't be guessed from many addresses either", async () => {
    const { email, secret } = await withTwoFactors()
    const from = (n: number) => `198.51.100.${n}`
    for (let n = 0; n < 10; n++) expect((await logIn(email, "000000", from(n))).status).toBe(401)
    expect((await logIn(email, codeOf(secret), from(10))).status).toBe(429)
    // a password alone is judged as before
    expect((await logIn(email, undefined, from(10))).status).toBe(401)
    fixture.clock.advance(15 * 60_000)
    expect((await logIn(email, codeOf(secret), from(10))).status).toBe(200)
  })

  it("is turned on once, with the secret that was confirmed, when several ask at once", async () => {
    const { email, token } = await signedIn()
    const first = (await begin(token)).json.secret
    const now = fixture.clock.nowMs()
    const [early, late] = [totpAt(first, now), totpAt(first, now + 30_000)]
    const answers = await Promise.all([confirm(token, early), confirm(token, late), begin(token)])
    expect(answers.map(({ status }) => [200, 400, 409].includes(status))).not.toContain(false)
    const codes = answers.flatMap(({ json }) => (json.recovery_codes as string[]) ?? [])
    const last = answers[2]?.json.secret ?? first
    const on = (await accounts.me(token)).json.two_factor
    expect(codes).toHaveLength(on ? 10 : 0)
    fixture.clock.advance(60_000)
    if (on) {
      expect((await logIn(email, codeOf(first))).status).toBe(200)
      expect((await logIn(email, codes[0])).status).toBe(200)
    } else expect((await confirm(token, codeOf(last))).status).toBe(200)
  })

  it("ends with the password and a code", async () => {
    const { email, secret, token } = await withTwoFactors()
    const end = (code: string, current_password = password) =>
      accounts.post("two-factor/end", { current_password, code }, { token })
    expect((await end(codeOf(secret), "not the password")).status).toBe(400)
    expect(await end("000000")).toMatchObject(refused(400))
    expect((await end(codeOf(secret))).status).toBe(200)
    expect((await end(codeOf(secret))).status).toBe(409)
    expect((await logIn(email)).status).toBe(200)
    expect(await accounts.rowOf(email)).toMatchObject({ totp_secret: null, recovery_sha256: [] })
  })
})
