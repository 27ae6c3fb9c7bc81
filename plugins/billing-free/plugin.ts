import { Effect } from "effect"
import { definePlugin, provide, resolve, Tokens } from "../../core/index.ts"
import { makeFreeBilling } from "./free-billing.ts"
import { Settings } from "./settings.ts"

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
