import { Effect, Schema, Stream } from "effect"
import { defineEndpoint, definePlugin, provide, Tokens } from "../../../core/index.ts"

/** A public endpoint whose event stream stays open and never sends an event. */
const quietStream = defineEndpoint({
  id: "quiet.stream",
  summary: "Stays open.",
  method: "GET",
  path: "/quiet",
  access: "public",
  body: "none",
  maxBodyBytes: 0,
  event: Schema.Struct({}),
  plan: () =>
    Effect.succeed({ bound: {}, run: Effect.succeed({ status: 200, events: Stream.never }) }),
})

export const plugin = definePlugin({
  name: "quiet-stream",
  api: 1,
  about: "An event stream without events, for tests.",
  settings: Schema.Struct({}),
  needs: [],
  provides: [Tokens.endpoints],
  create: () => ({
    register: (container) => provide(container, Tokens.endpoints, quietStream),
  }),
})
