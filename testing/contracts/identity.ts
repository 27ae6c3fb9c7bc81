import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Caller, defaultLimits, type Limits } from "../../core/caller.ts"
import { isApiError } from "../../core/errors.ts"
import type { Identity } from "../../core/ports/identity.ts"
import { randomText } from "../../core/services/ids.ts"
import { runs } from "../property.ts"

export interface KeyState {
  readonly mode: "live" | "test"
  readonly role: "user" | "admin"
  readonly limits: Limits
  readonly verified: boolean
  readonly suspended: boolean
  readonly revoked: boolean
}

export interface OpenedIdentity {
  readonly identity: Identity
  /** Stores a key under a new account. */
  addKey(
    key: string,
    state: KeyState,
  ): Promise<{ readonly keyId: string; readonly account: string }>
  /** Changes the state of a key as an administrator, or another server, would. */
  changeKey?(
    key: string,
    state: Pick<KeyState, "verified" | "suspended" | "revoked">,
  ): Promise<void>
  advance(ms: number): void
  close?(): Promise<void>
}

const sound: KeyState = {
  mode: "live",
  role: "user",
  limits: defaultLimits,
  verified: true,
  suspended: false,
  revoked: false,
}
const cacheMs = 5_000

/** Returns the caller, or the code and message of the refusal. */
const outcome = async (
  effect: ReturnType<Identity["authenticate"]>,
): Promise<Caller | { code: string; message: string }> =>
  Effect.runPromise(
    effect.pipe(
      Effect.catch((error) =>
        isApiError(error)
          ? Effect.succeed({ code: error.code as string, message: error.message })
          : Effect.die(error),
      ),
    ),
  )

export interface IdentityContractOptions {
  /** Keys have no states, roles and caps: they are known, or (revoked) are not. */
  readonly isFixed?: boolean
}

/** What every Identity must do. `open` is called once; each test uses keys of its own. */
export const identityContract = (
  name: string,
  open: () => Promise<OpenedIdentity>,
  { isFixed = false }: IdentityContractOptions = {},
): void => {
  describe(`${name} keeps the identity contract`, () => {
    let opened: OpenedIdentity
    beforeAll(async () => {
      opened = await open()
    })
    afterAll(() => opened?.close?.())
    const newKey = (mode: "live" | "test" = "live") => `svc_${mode}_${randomText(32)}`
    const who = (key: string) => outcome(opened.identity.authenticate(key))
    const add = async (state: Partial<KeyState> = {}) => {
      const key = newKey(state.mode)
      return { key, ...(await opened.addKey(key, { ...sound, ...state })) }
    }

    it("knows whose key it is, with its mode, role, scopes and limits", async () => {
      const limits: Limits = {
        rpm: 7,
        rpd: 70,
        concurrency: 3,
        monthlyCapMicros: isFixed ? 0n : 9_000_000_000_000_001n,
        bodyMb: 2,
      }
      const role = isFixed ? "user" : "admin"
      const live = await add({ role, limits })
      expect(await who(live.key)).toEqual({
        tenant: { account: live.account, mode: "live" },
        keyId: live.keyId,
        scopes: ["*"],
        role,
        limits,
      })
      const test = await add({ mode: "test" })
      expect(await who(test.key)).toEqual({
        tenant: { account: test.account, mode: "test" },
        keyId: test.keyId,
        scopes: ["*"],
        role: "user",
        limits: isFixed ? { ...defaultLimits, monthlyCapMicros: 0n } : defaultLimits,
      })
    })

    it("refuses missing, unknown and revoked keys alike", async () => {
      const revoked = await add({ revoked: true })
      const refusals = await Promise.all(["", newKey(), revoked.key].map(who))
      expect(new Set(refusals.map((r) => JSON.stringify(r))).size).toBe(1)
      expect(refusals[0]).toMatchObject({ code: "authentication_error" })
    })

    it.skipIf(isFixed)(
      "says what is wrong with the account, the key first, the e-mail second",
      async () => {
        const codes = []
        for (const state of [
          { revoked: true, verified: false, suspended: true },
          { verified: false, suspended: true },
          { verified: false },
          { suspended: true },
        ]) {
          const { key } = await add(state)
          const refusal = await who(key)
          expect(JSON.stringify(refusal)).not.toContain(key)
          codes.push("code" in refusal ? refusal.code : "none")
        }
        expect(codes).toEqual([
          "authentication_error",
          "email_not_verified",
          "email_not_verified",
          "account_suspended",
        ])
      },
    )

    it.skipIf(isFixed)("notices a change after at most 5 s, in both directions", async () => {
      const { key, keyId } = await add()
      const states = [
        { state: { verified: true, suspended: true, revoked: false }, code: "account_suspended" },
        { state: { verified: true, suspended: false, revoked: false }, code: undefined },
        {
          state: { verified: true, suspended: false, revoked: true },
          code: "authentication_error",
        },
      ]
      for (const { state, code } of states) {
        await who(key)
        await opened.changeKey?.(key, state)
        opened.advance(cacheMs)
        for (const answer of [await who(key), await outcome(opened.identity.resume(keyId))])
          expect("code" in answer ? answer.code : undefined).toBe(code)
      }
    })

    it("resumes work for a key, and refuses when the key or the account may no longer call", async () => {
      const { key, keyId } = await add()
      expect(await outcome(opened.identity.resume(keyId))).toEqual(await who(key))
      if (!isFixed) {
        const suspended = await add({ suspended: true })
        expect(await outcome(opened.identity.resume(suspended.keyId))).toMatchObject({
          code: "account_suspended",
        })
      }
      const revoked = await add({ revoked: true })
      expect(await outcome(opened.identity.resume(revoked.keyId))).toMatchObject({
        code: "authentication_error",
      })
      expect(await outcome(opened.identity.resume("key_unknown"))).toMatchObject({
        code: "authentication_error",
      })
    })

    it("refuses any text that is no key, and changed ones", async () => {
      const { key } = await add()
      const changed = [
        key.toUpperCase(),
        ` ${key}`,
        `${key} `,
        key.slice(0, -1),
        `${key}x`,
        `Bearer ${key}`,
      ]
      for (const text of changed)
        expect(await who(text)).toMatchObject({ code: "authentication_error" })
      await fc.assert(
        fc.asyncProperty(
          fc.oneof(
            fc.string({ unit: "binary", maxLength: 300 }),
            fc.string({ minLength: 16, maxLength: 60 }),
          ),
          async (text) => {
            expect(await who(text)).toMatchObject({ code: "authentication_error" })
            expect(await outcome(opened.identity.resume(text))).toMatchObject({
              code: "authentication_error",
            })
          },
        ),
        { numRuns: runs(60) },
      )
    })

    it("answers many callers of one key at once", async () => {
      const { key, keyId } = await add()
      const answers = await Promise.all(Array.from({ length: 50 }, () => who(key)))
      for (const answer of answers) expect(answer).toMatchObject({ keyId })
    })
  })
}
