import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { isApiError } from "../../../core/index.ts"
import { runs } from "../../../testing/property.ts"
import { openSessionFixture, type SessionFixture } from "../testing/session-fixture.ts"
import { lifeMs, type MailPurpose } from "./mail-tokens.ts"

let fixture: SessionFixture
beforeAll(async () => {
  fixture = await openSessionFixture()
})
afterAll(() => fixture?.close())

const run = Effect.runPromise
const purposes = ["verify", "reset"] as const

const addAccount = async () => {
  const id = fixture.deps.ids.make("acct_")
  const row = {
    id,
    email: `${id.toLowerCase()}@example.com`,
    password_hash: "-",
    role: "user",
    is_first: false,
    verified_at: null,
    suspended_at: null,
  } as const
  await fixture.tables
    .insertInto("accounts_account")
    .values({ ...row, created_at: new Date(fixture.clock.nowMs()) })
    .execute()
  return id
}

const issue = (account: string, purpose: MailPurpose) =>
  run(
    fixture.database.transaction((tx) =>
      Effect.andThen(
        fixture.deps.accounts.lock(account, tx),
        fixture.deps.tokens.issue(account, purpose, tx),
      ),
    ),
  )
const use = (token: string, purpose: MailPurpose) =>
  run(fixture.database.transaction((tx) => fixture.deps.tokens.use(token, purpose, tx)))
const find = (token: string, purpose: MailPurpose) =>
  run(
    fixture.deps.tokens
      .find(token, purpose)
      .pipe(Effect.catchIf(isApiError, (error) => Effect.succeed(error))),
  )

describe("tokens in mails", () => {
  it("live as their states say: open -> used | voided | expired", async () => {
    const steps = fc.oneof(
      fc.record({
        do: fc.constant("issue" as const),
        who: fc.nat(1),
        purpose: fc.constantFrom(...purposes),
      }),
      fc.record({
        do: fc.constantFrom("find" as const, "use" as const),
        which: fc.nat(9),
        purpose: fc.constantFrom(...purposes),
      }),
      fc.record({
        do: fc.constant("wait" as const),
        ms: fc.constantFrom(1, lifeMs.reset - 1, lifeMs.reset, lifeMs.verify),
      }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 30 }), async (script) => {
        const owners = [await addAccount(), await addAccount()]
        const made: {
          token: string
          owner: string
          purpose: MailPurpose
          untilMs: number
          state: "open" | "used" | "voided"
        }[] = []
        for (const step of script) {
          if (step.do === "wait") fixture.clock.advance(step.ms)
          else if (step.do === "issue") {
            const owner = owners[step.who]!
            const token = await issue(owner, step.purpose)
            for (const older of made)
              if (older.owner === owner && older.purpose === step.purpose && older.state === "open")
                older.state = "voided"
            made.push({
              token,
              owner,
              purpose: step.purpose,
              untilMs: fixture.clock.nowMs() + lifeMs[step.purpose],
              state: "open",
            })
          } else {
            const one = made[step.which]
            if (!one) continue
            const isOpen =
              one.state === "open" &&
              one.purpose === step.purpose &&
              fixture.clock.nowMs() < one.untilMs
            if (step.do === "use") {
              expect(await use(one.token, step.purpose)).toBe(isOpen ? one.owner : undefined)
              if (isOpen) one.state = "used"
            } else
              expect(await find(one.token, step.purpose)).toEqual(
                isOpen
                  ? one.owner
                  : expect.objectContaining({ code: "invalid_request_error", param: "token" }),
              )
          }
        }
        expect(new Set(made.map(({ token }) => token)).size).toBe(made.length)
      }),
      { numRuns: runs(40) },
    )
  })

  it("can be used by one of many at once", async () => {
    const account = await addAccount()
    const token = await issue(account, "reset")
    const used = await Promise.all(Array.from({ length: 20 }, () => use(token, "reset")))
    expect(used.filter((who) => who === account)).toHaveLength(1)
  })

  it("never leave two open, also when many are asked for at once", async () => {
    const account = await addAccount()
    const tokens = await Promise.all(Array.from({ length: 10 }, () => issue(account, "verify")))
    const open = await Promise.all(tokens.map((token) => use(token, "verify")))
    expect(open.filter((who) => who !== undefined)).toHaveLength(1)
  })

  it("are refused with one text, and known ones leave a trace that says why", async () => {
    const account = await addAccount()
    const [voided, used] = [await issue(account, "verify"), await issue(account, "verify")]
    await use(used, "verify")
    const expired = await issue(account, "reset")
    fixture.clock.advance(lifeMs.reset)
    const unknown = "x".repeat(43)
    const refusals = [
      await find(voided, "verify"),
      await find(used, "verify"),
      await find(expired, "reset"),
      await find(expired, "verify"),
    ]
    for (const text of [
      unknown,
      "",
      "a",
      "\u0000",
      "' OR 1=1 --",
      "é".repeat(43),
      "x".repeat(100_000),
    ])
      refusals.push(await find(text, "verify"))
    expect(new Set(refusals.map((refusal) => JSON.stringify(refusal))).size).toBe(1)
    const traces = (await fixture.auditOf(account)).map(({ action, after }) => ({ action, after }))
    expect(traces).toEqual(
      [
        { purpose: "verify", reason: "voided" },
        { purpose: "verify", reason: "used" },
        { purpose: "reset", reason: "expired" },
        { purpose: "verify", reason: "other_purpose" },
      ].map((after) => ({ action: "token.refuse", after })),
    )
    // the audit log is limited
    for (let n = 0; n < 70; n++) await find(used, "verify")
    expect(await fixture.auditOf(account)).toHaveLength(60)
  })

  it("are stored as hashes only", async () => {
    const token = await issue(await addAccount(), "reset")
    const rows = await fixture.tables.selectFrom("accounts_token").selectAll().execute()
    expect(rows.map((row) => row.sha256.toString("latin1")).join()).not.toContain(token)
    expect(rows.at(-1)?.sha256).toHaveLength(32)
  })
})
