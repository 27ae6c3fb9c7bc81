import { createHash, timingSafeEqual } from "node:crypto"
import { Effect } from "effect"
import { apiError, type Caller, defaultLimits, type Identity } from "../../core/index.ts"
import type { Settings, StaticKey } from "./settings.ts"

const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest()

/** The same on every machine and after every restart. */
const stableId = (prefix: string, name: string): string =>
  `${prefix}_${digestOf(`${prefix}:${name}`).toString("hex").slice(0, 24)}`

const callerOf = (key: StaticKey, defaults: Settings["limits"]) => ({
  tenant: {
    account: stableId("acct", key.account ?? key.name),
    mode: key.test === true ? ("test" as const) : ("live" as const),
  },
  keyId: stableId("key", key.name),
  scopes: key.scopes ?? ["*"],
  role: "user" as const,
  limits: { ...defaultLimits, monthlyCapMicros: 0n, ...defaults, ...key.limits },
  ...(key.models !== undefined && { models: key.models }),
})

/**
 * Knows the keys of the config file by their hashes. A lookup takes the same time for any key that
 * is presented, as it compares with all of them.
 */
export const makeStaticIdentity = ({ keys, limits }: Settings): Identity => {
  const known = keys
    .filter(({ hash }) => hash !== "")
    .map((key) => ({
      digest: Buffer.from(key.hash.slice("sha256:".length), "hex"),
      caller: callerOf(key, limits),
    }))
  const findByKey = (bearer: string): Caller | undefined => {
    const presented = digestOf(bearer)
    let found: Caller | undefined
    for (const { digest, caller } of known) if (timingSafeEqual(digest, presented)) found = caller
    return found
  }
  const orRefuse = (caller: Caller | undefined) =>
    caller ? Effect.succeed(caller) : Effect.fail(apiError("authentication_error"))
  return {
    authenticate: (bearer) => Effect.suspend(() => orRefuse(findByKey(bearer))),
    resume: (keyId) =>
      Effect.suspend(() => orRefuse(known.find(({ caller }) => caller.keyId === keyId)?.caller)),
  }
}
