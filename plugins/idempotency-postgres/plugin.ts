import { Effect, Schema } from "effect"
import { definePlugin, provide, resolve, Tokens } from "../../core/index.ts"
import { migrations } from "./migrations.ts"
import { makePostgresIdempotency } from "./postgres-idempotency.ts"
import { sweepExpired, sweepHourly } from "./sweeper.ts"

export const plugin = definePlugin({
  name: "idempotency-postgres",
  api: 1,
  about: "Remembers replies by Idempotency-Key for 24 hours, in PostgreSQL.",
  settings: Schema.Struct({}),
  needs: [Tokens.database, Tokens.clock, Tokens.log, Tokens.secrets, Tokens.deployment],
  provides: [Tokens.idempotency],
  migrations,
  create: () => ({
    start: (container) =>
      Effect.gen(function* () {
        const database = resolve(container, Tokens.database)
        const clock = resolve(container, Tokens.clock)
        provide(
          container,
          Tokens.idempotency,
          makePostgresIdempotency(database, clock, resolve(container, Tokens.secrets)),
        )
        if (resolve(container, Tokens.deployment).mode === "server")
          yield* sweepHourly(sweepExpired(database, clock), resolve(container, Tokens.log))
      }),
  }),
})
