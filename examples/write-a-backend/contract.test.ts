import { Effect, Scope } from "effect"
import { chatModelContract } from "rakit/testing"
import { backend } from "./plugin.ts"

chatModelContract("backend-babble", async () => {
  const request = {
    id: "babble",
    task: "chat",
    path: "",
    options: { window: 256 },
    contextTokens: 8_192,
    progress: () => {},
  } as const
  const opened = backend.open(request).pipe(Scope.provide(Scope.makeUnsafe()))
  return { id: "babble", loaded: await Effect.runPromise(opened) }
})
