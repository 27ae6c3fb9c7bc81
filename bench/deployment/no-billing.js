// Instead of `billing-ledger`: admits everything and does nothing.
import { Effect, Schema } from "effect"
import { definePlugin, provide, Tokens } from "rakit/core"

const rate = Effect.succeed({ limit: 1_000_000, remaining: 999_999, resetMs: 1_000 })
const billing = {
  admit: () => rate,
  settle: () => Effect.void,
  voidChildren: () => Effect.void,
  balance: () => Effect.succeed({ balanceMicros: 0n, heldMicros: 0n }),
  spentThisMonth: () => Effect.succeed(new Map()),
  adjust: () => Effect.void,
}

export const plugin = definePlugin({
  name: "bench-no-billing",
  api: 1,
  about: "No limits, no holds, no money.",
  settings: Schema.Struct({}),
  needs: [],
  provides: [Tokens.billing],
  create: () => ({
    start: (container) => Effect.sync(() => provide(container, Tokens.billing, billing)),
  }),
})
