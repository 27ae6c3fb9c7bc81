import { Effect, Schema } from "effect"
import { definePlugin, provide, repeat, resolve, Tokens } from "../../core/index.ts"
import { migrations } from "./migrations.ts"
import { isOutage, makePostgresIdempotency, renewMs } from "./postgres-idempotency.ts"
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
        const log = resolve(container, Tokens.log)
        const store = makePostgresIdempotency(database, clock, resolve(container, Tokens.secrets))
        provide(container, Tokens.idempotency, store)
        if (resolve(container, Tokens.deployment).mode !== "server") return
        yield* sweepHourly(sweepExpired(database, clock), log)
        yield* repeat(
          log,
          {
            event: "idempotency.renewal_failed",
            message: "keys of running requests could not be renewed",
            everyMs: renewMs,
            isDelayed: true,
          },
          // of an outage the database's own log says
          Effect.catch(store.renew, (error) =>
            isOutage(error) ? Effect.void : Effect.fail(error),
          ),
        )
      }),
  }),
})
