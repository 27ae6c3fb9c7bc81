import { Effect, Schema } from "effect"
import { definePlugin, provide, resolve, setting, Tokens } from "../../core/index.ts"
import { makeFreeBilling } from "./free-billing.ts"

const Settings = Schema.Struct({
  maxKeys: setting(
    Schema.Int.check(Schema.isGreaterThan(0)),
    10_000,
    "Most keys in memory. Beyond it the key that was idle longest is dropped, and its counts start again at zero.",
  ),
})

export const plugin = definePlugin({
  name: "billing-free",
  api: 1,
  about: "Limits of each key in memory, and no money.",
  settings: Settings,
  needs: [Tokens.clock],
  provides: [Tokens.billing],
  create: ({ maxKeys }) => ({
    start: (container) =>
      Effect.sync(() =>
        provide(
          container,
          Tokens.billing,
          makeFreeBilling(resolve(container, Tokens.clock), maxKeys),
        ),
      ),
  }),
})
