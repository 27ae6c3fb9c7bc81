import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { accountsOf, password } from "../testing/accounts.ts"
import { openSessionFixture, type SessionFixture } from "../testing/session-fixture.ts"
import { totpAt } from "../two-factor/totp.ts"

let fixture: SessionFixture
let accounts: ReturnType<typeof accountsOf>
beforeAll(async () => {
  fixture = await openSessionFixture()
  accounts = accountsOf(fixture)
})
beforeEach(() => fixture.clock.advance(24 * 3_600_000))
afterAll(() => fixture?.close())

const next = "the owner's password"
const signedIn = async (verified: boolean) => {
  const { email } = await accounts.signUp({ verified })
  return { email, token: await accounts.signIn(email) }
}
/** Returns the token that was mailed to the new address. */
const askForEmail = async (token: string, email = accounts.newEmail()) => {
  await accounts.post("email", { email, current_password: password }, { token })
  return fixture.mailedToken(email, "email")
}
const confirmEmail = (token: string) => accounts.post("confirm-email", { token })
const resetBy = async (email: string) => {
  await accounts.post("forgot", { email })
  await fixture.idle()
  const token = fixture.mailedToken(email, "reset")
  return accounts.post("reset", { token, password: next })
}

describe("who takes an account back from somebody that knew the password", () => {
  it.each([true, false])("by a reset, keeps its address, verified before: %s", async (verified) => {
    const { email, token } = await signedIn(verified)
    const mailed = await askForEmail(token)
    expect((await resetBy(email)).status).toBe(200)
    expect(await confirmEmail(mailed)).toMatchObject({ status: 400, json: { param: "token" } })
    expect(await accounts.signIn(email, next)).toMatch(/\./)
  })

  it("by a new password, keeps its address", async () => {
    const { email, token } = await signedIn(true)
    const mailed = await askForEmail(token)
    const body = { current_password: password, password: next }
    expect((await accounts.post("password", body, { token })).status).toBe(200)
    expect((await confirmEmail(mailed)).status).toBe(400)
    expect(await accounts.signIn(email, next)).toMatch(/\./)
  })

  it("by the first reset of its address, is not asked for a stranger's codes", async () => {
    const { email, token } = await signedIn(false)
    const { json } = await accounts.post("two-factor", { current_password: password }, { token })
    const code = totpAt(json.secret, fixture.clock.nowMs())
    expect((await accounts.post("two-factor/confirm", { code }, { token })).status).toBe(200)
    expect((await resetBy(email)).json).toMatchObject({ email_verified: true, two_factor: false })
    expect(await accounts.signIn(email, next)).toMatch(/\./)
  })
})

it("whether an address has an account shows in no link that was mailed before", async () => {
  const known = await signedIn(true)
  for (const asked of [known.email, accounts.newEmail()]) {
    const { token } = await signedIn(true)
    const mailed = await askForEmail(token)
    await accounts.post("email", { email: asked, current_password: password }, { token })
    expect((await confirmEmail(mailed)).status).toBe(400)
  }
})
