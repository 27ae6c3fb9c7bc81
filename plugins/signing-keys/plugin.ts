import { Effect, Schema } from "effect"
import {
  definePlugin,
  makeStarted,
  PluginError,
  provide,
  resolve,
  setting,
  Tokens,
} from "../../core/index.ts"
import { makeJwksEndpoint } from "./endpoint.ts"
import { type KeyRing, makeKeyRing } from "./key-ring.ts"
import { migrations } from "./migrations.ts"
import { makeSigner } from "./signer.ts"
import { renewHourly, renewKeys } from "./upkeep.ts"

const days = 30

const Settings = Schema.Struct({
  rotateDays: setting(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3_650 })),
    days,
    "How long a key signs. Session keys are accepted for 25 hours more, receipt keys forever.",
  ),
})
type Settings = typeof Settings.Type

export const plugin = definePlugin<Settings>({
  name: "signing-keys",
  api: 1,
  about:
    "Signs sessions and receipts with Ed25519 keys that are stored in the database and rotate; serves /.well-known/jwks.json.",
  settings: Settings,
  needs: [Tokens.database, Tokens.clock, Tokens.log, Tokens.secrets, Tokens.deployment],
  provides: [Tokens.signer, Tokens.endpoints],
  migrations,
  create: ({ rotateDays }) => {
    const started = makeStarted<KeyRing>()
    return {
      register: (container) => provide(container, Tokens.endpoints, makeJwksEndpoint(started.get)),
      start: (container) =>
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
            yield* renewHourly(ring, log, Math.random)
          }
          started.set(ring)
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
    }
  },
})
