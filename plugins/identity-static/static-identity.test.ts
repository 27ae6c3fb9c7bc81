import { createHash } from "node:crypto"
import { Effect, Result, Schema } from "effect"
import { expect, it } from "vitest"
import type { Identity } from "../../core/index.ts"
import { identityContract } from "../../testing/contracts/identity.ts"
import { Settings, type StaticKey } from "./settings.ts"
import { makeStaticIdentity } from "./static-identity.ts"

const hashOf = (key: string) => `sha256:${createHash("sha256").update(key).digest("hex")}`
const keyOf = (name: string) => `svc_live_${name.padEnd(32, "x")}`
const who = (identity: Identity, key: string) => Effect.runPromise(identity.authenticate(key))

identityContract(
  "static",
  async () => {
    const keys: StaticKey[] = []
    // a new config file and a restart
    const current = () => makeStaticIdentity({ keys, limits: {} })
    return {
      identity: {
        authenticate: (bearer) => current().authenticate(bearer),
        resume: (keyId) => current().resume(keyId),
      },
      addKey: async (key, { mode, limits, revoked }) => {
        const { monthlyCapMicros: _, ...counts } = limits
        const added = {
          ...{ name: `key ${keys.length}`, hash: hashOf(key), test: mode === "test" },
          limits: counts,
        }
        keys.push(added)
        const caller = await who(current(), key)
        if (revoked) keys.pop()
        return { keyId: caller.keyId ?? "", account: caller.tenant.account }
      },
      advance: () => {},
    }
  },
  { isFixed: true },
)

const decode = (settings: unknown) =>
  Result.match(Schema.decodeUnknownResult(Settings)(settings as never), {
    onSuccess: () => "fine",
    onFailure: String,
  })

it("has the same ids after a restart, wherever the key stands; keys of one account share it", async () => {
  const [a, b] = [keyOf("a"), keyOf("b")]
  const app = { name: "app", hash: hashOf(a) }
  const next = { name: "app 2027", hash: hashOf(b), account: "app" }
  const first = await who(makeStaticIdentity({ keys: [app], limits: {} }), a)
  const identity = makeStaticIdentity({ keys: [next, app], limits: { rpm: 7 } })
  expect(await who(identity, a)).toEqual({ ...first, limits: { ...first.limits, rpm: 7 } })
  const second = await who(identity, b)
  expect(second.tenant).toEqual(first.tenant)
  expect(second.keyId).not.toBe(first.keyId)
  expect(JSON.stringify([first, second], (_, value) => String(value))).not.toContain(a.slice(9))
})

it("refuses a plain key in the config, without showing it, and says how to make a hash", () => {
  const key = keyOf("secret")
  for (const hash of [key, `sha256:${key}`, hashOf(key).slice(7), `${hashOf(key)}0`, "sha256:"]) {
    const refusal = decode({ keys: [{ name: "app", hash }] })
    expect(refusal).toContain("npx rakit keys hash")
    expect(refusal).not.toContain(key)
  }
})

it("refuses two keys of one name, one key twice, and hidden characters in names", () => {
  const [a, b] = [hashOf("a"), hashOf("b")]
  const key = (name: string, hash: string) => ({ name, hash })
  expect(decode({ keys: [key("x", a), key("y", b), key("z", "")] })).toBe("fine")
  expect(decode({ keys: [key("x", ""), key("y", "")] })).toBe("fine")
  expect(decode({ keys: [key("x", a), key("x", b)] })).toContain("two keys of one name")
  expect(
    decode({ keys: [key("x", a), key("y", a.toUpperCase().replace("SHA", "sha"))] }),
  ).toContain("one hash twice")
  expect(decode({ keys: [key("a\u202eb", a)] })).toContain("invisible")
})

it("takes a largest body of whole megabytes, up to that of any endpoint", () => {
  const key = (bodyMb: number) => ({ name: "x", hash: hashOf("x"), limits: { bodyMb } })
  for (const bodyMb of [1, 50])
    expect(decode({ keys: [key(bodyMb)], limits: { bodyMb } })).toBe("fine")
  for (const bodyMb of [0, 1.5, 51]) {
    expect(decode({ keys: [key(bodyMb)] })).toContain("bodyMb")
    expect(decode({ keys: [], limits: { bodyMb } })).toContain("bodyMb")
  }
})

it("an empty hash is no key: nothing gets in with it", async () => {
  const identity = makeStaticIdentity({ keys: [{ name: "x", hash: "" }], limits: {} })
  expect(await Effect.runPromise(Effect.flip(identity.authenticate("")))).toMatchObject({
    code: "authentication_error",
  })
})
