import { Effect } from "effect"
import type { DependencyContainer } from "tsyringe"
import { definePlugin, PluginError, provide, resolve, Tokens } from "../../core/index.ts"
import { makeJwksEndpoint } from "./endpoint.ts"
import { type KeyRing, makeKeyRing } from "./key-ring.ts"
import { migrations } from "./migrations.ts"
import { Settings } from "./settings.ts"
import { makeSigner } from "./signer.ts"
import { renewHourly, renewKeys } from "./upkeep.ts"

/** The endpoint is known before the database is. */
const rings = new WeakMap<DependencyContainer, KeyRing>()

export const plugin = definePlugin<Settings>({
  name: "signing-keys",
  api: 1,
  about:
    "Signs sessions and receipts with Ed25519 keys that lie in the database and rotate; serves /.well-known/jwks.json.",
  settings: Settings,
  needs: [Tokens.database, Tokens.clock, Tokens.log, Tokens.secrets, Tokens.deployment],
  provides: [Tokens.signer, Tokens.endpoints],
  migrations,
  register: (container) =>
    provide(
      container,
      Tokens.endpoints,
      makeJwksEndpoint(() => rings.get(container)),
    ),
  start: (container, { rotateDays }) =>
    Effect.gen(function* () {
      const log = resolve(container, Tokens.log).with({ plugin: "signing-keys" })
      const ring = makeKeyRing({
        database: resolve(container, Tokens.database),
        clock: resolve(container, Tokens.clock),
        secrets: resolve(container, Tokens.secrets),
        log,
        rotateDays,
      })
      if (resolve(container, Tokens.deployment).mode === "server") {
        yield* renewKeys(ring)
        yield* Effect.forkScoped(renewHourly(ring, log, Math.random))
      }
      rings.set(container, ring)
      provide(container, Tokens.signer, makeSigner(ring))
    }).pipe(
      Effect.mapError(
        (cause) =>
          new PluginError({
            plugin: "signing-keys",
            message: `the signing keys can't be read or made: ${cause.message}`,
            cause,
          }),
      ),
    ),
})
