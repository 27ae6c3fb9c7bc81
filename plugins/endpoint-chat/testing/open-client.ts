import { Effect } from "effect"
import OpenAI from "openai"
import type { SchemaChecker } from "../../../core/ports/schema-checker.ts"
import { makeIds } from "../../../core/services/ids.ts"
import type { Outbound } from "../../../core/services/outbound.ts"
import {
  goodKey,
  type HttpFixture,
  openHttpFixture,
} from "../../../runtime/http/testing/fixture.ts"
import { makeOutbound } from "../../../runtime/services/outbound/outbound.ts"
import {
  type FakeChatModel,
  type FakeChatScript,
  fakeChatModel,
  fakeClock,
} from "../../../testing/index.ts"
import { makeSchemaCheckEndpoint } from "../schema-check-endpoint.ts"
import { chatEndpoint } from "./chat-endpoint.ts"

export interface ClientFixture {
  readonly client: OpenAI
  readonly model: FakeChatModel
  readonly deps: HttpFixture
  /** A POST without the client library. */
  post(
    path: string,
    body: object,
  ): Promise<{ readonly status: number; readonly json: Record<string, unknown> }>
}

/** The official client over real HTTP, against a fake model. */
export const openClient = async (
  script: FakeChatScript = {},
  checker: SchemaChecker = { check: () => Effect.die("not asked for") },
  outbound: Outbound = makeOutbound([]),
): Promise<ClientFixture> => {
  const model = fakeChatModel(script)
  const deps = await openHttpFixture({ models: [model.entry], until: "listening" })
  deps.catalogue.set(model.entry.id, { state: "ready", loaded: model.loaded })
  deps.server.publish([
    chatEndpoint({
      catalogue: deps.catalogue,
      clock: fakeClock(),
      ids: makeIds(() => Date.now()),
      outbound,
    }),
    makeSchemaCheckEndpoint(() => checker),
  ])
  deps.server.ready()
  const post: ClientFixture["post"] = async (path, body) => {
    const reply = await fetch(deps.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${goodKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    })
    return { status: reply.status, json: (await reply.json()) as Record<string, unknown> }
  }
  return {
    client: new OpenAI({ baseURL: `${deps.url}/v1`, apiKey: goodKey, maxRetries: 0 }),
    model,
    deps,
    post,
  }
}

export type Messages = OpenAI.ChatCompletionMessageParam[]
export const user: Messages = [{ role: "user", content: "What is the weather in Jakarta?" }]
export const weatherTool = (
  name: string,
  more: object = {},
): OpenAI.ChatCompletionFunctionTool => ({
  type: "function",
  function: {
    name,
    description: "Tells it.",
    parameters: {
      type: "object",
      required: ["city"],
      properties: { city: { type: "string" } },
      additionalProperties: false,
    },
    ...more,
  },
})
export const tools = [weatherTool("get_weather")]
