import { Effect } from "effect"
import type { PortError, SigningPurpose } from "../../../core/index.ts"
import type { openReplicas } from "./replicas.ts"

type Replica = ReturnType<Awaited<ReturnType<typeof openReplicas>>["replica"]>
export const run = <A>(effect: Effect.Effect<A, PortError>) => Effect.runPromise(effect)
export const sign = (
  replica: Replica,
  purpose: SigningPurpose,
  payload: unknown = { sub: "acct_1" },
) => run(replica.signer.sign(purpose, payload))
export const verify = (replica: Replica, purpose: SigningPurpose, jws: string) =>
  run(replica.signer.verify(purpose, jws))
export const kidOf = (jws: string) =>
  JSON.parse(Buffer.from(jws.split(".")[0]!, "base64url").toString()).kid as string
export const jwks = async (replica: Replica) => ({
  keys: (await run(replica.ring.published)).map(({ kid, publicJwk }) => ({
    ...publicJwk,
    kid,
    alg: "EdDSA",
    use: "sig",
  })),
})
