import { Schema } from "effect"
import { fakeWorkers } from "../../../testing/index.ts"
import { type ChatEndpointDeps, makeChatEndpoint } from "../endpoint.ts"
import { ChatSettings } from "../settings.ts"

/** The endpoint with the default settings. */
export const chatEndpoint = (
  deps: Omit<ChatEndpointDeps, "workers" | "settings">,
  settings: object = {},
) =>
  makeChatEndpoint({
    ...deps,
    workers: fakeWorkers(),
    settings: Schema.decodeSync(ChatSettings)(settings),
  })
