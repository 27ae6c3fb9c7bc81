import { Effect } from "effect"
import OpenAI from "openai"
import type { ImageSafety } from "../../../core/ports/image.ts"
import {
  goodKey,
  type HttpFixture,
  openHttpFixture,
} from "../../../runtime/http/testing/fixture.ts"
import {
  type FakeImageModel,
  type FakeImageScript,
  fakeClock,
  fakeImageModel,
} from "../../../testing/index.ts"
import { makeImageEndpoints } from "../endpoint.ts"

export interface ClientFixture {
  readonly client: OpenAI
  readonly model: FakeImageModel
  readonly deps: HttpFixture
  /** A POST without the client library. */
  post(
    path: "generations" | "edits",
    body: object,
    headers?: Record<string, string>,
  ): Promise<{ readonly status: number; readonly headers: Headers; readonly json: Answer }>
}

export interface Answer extends Record<string, unknown> {
  readonly data?: readonly { readonly b64_json: string }[]
  readonly error?: {
    readonly code: string
    readonly param: string | null
    readonly message: string
  }
}

/** Refuses prompts and pictures by a word, and remembers what it was asked. */
export const wordSafety = (refuses: {
  readonly prompt?: string
  /** Whether pictures are refused; or which, by how many pictures and previews were asked before. */
  readonly picture?: boolean | ((before: number) => boolean)
}) => {
  const asked: (string | Uint8Array)[] = []
  const safety: ImageSafety = {
    prompt: (text) =>
      Effect.sync(() => {
        asked.push(text)
        return refuses.prompt !== undefined && text.includes(refuses.prompt) ? "words" : undefined
      }),
    picture: (bytes) =>
      Effect.sync(() => {
        const before = asked.filter((one) => typeof one !== "string").length
        asked.push(bytes)
        const { picture } = refuses
        return (typeof picture === "function" ? picture(before) : picture) ? "nudity" : undefined
      }),
  }
  return { safety, asked }
}

/** The official client over real HTTP, against a fake model. */
export const openClient = async (
  script: FakeImageScript = {},
  safety?: ImageSafety,
): Promise<ClientFixture> => {
  const model = fakeImageModel(script)
  const deps = await openHttpFixture({ models: [model.entry], until: "listening" })
  deps.catalogue.set(model.entry.id, { state: "ready", loaded: model.loaded })
  deps.server.publish(
    makeImageEndpoints({
      catalogue: deps.catalogue,
      clock: fakeClock(),
      log: deps.log,
      metrics: deps.metrics,
      safety: () => safety,
    }),
  )
  deps.server.ready()
  const post: ClientFixture["post"] = async (path, body, headers = {}) => {
    const isForm = body instanceof FormData
    const reply = await fetch(`${deps.url}/v1/images/${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${goodKey}`,
        ...(!isForm && { "content-type": "application/json" }),
        ...headers,
      },
      body: isForm ? body : JSON.stringify(body),
    })
    return {
      status: reply.status,
      headers: reply.headers,
      json: (await reply.json()) as Answer,
    }
  }
  return {
    client: new OpenAI({ baseURL: `${deps.url}/v1`, apiKey: goodKey, maxRetries: 0 }),
    model,
    deps,
    post,
  }
}
