import { Effect } from "effect"
import type { Feature } from "../kinds.ts"
import { connectionFailure, failure, type UpstreamFailure } from "./failure.ts"
import { readUpTo } from "./status-failure.ts"
import type { Upstream } from "./upstream.ts"

/** What a server says of the model, as far as it says anything. */
export interface Probed {
  readonly contextTokens: number | undefined
  /** What another Rakit says it takes; empty: unknown. */
  readonly modalities: readonly string[]
  readonly capabilities: readonly string[]
  readonly embeddingSpace: string | undefined
}

const maxListBytes = 4 * 2 ** 20
const mostShown = 5
const probeTimeoutMs = 5_000

type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null

/** `llama3` is `llama3:latest` for Ollama. */
const isSame = (listed: unknown, wanted: string): boolean =>
  listed === wanted || listed === `${wanted}:latest`

/** vLLM's, Rakit's and llama.cpp's names of the window; the last is that of one slot. */
const windowOf = ({ max_model_len, context_window, meta }: Fields): number | undefined => {
  const window = max_model_len ?? context_window ?? (isFields(meta) ? meta.n_ctx : undefined)
  return Number.isSafeInteger(window) && (window as number) > 0 ? (window as number) : undefined
}

const stringsIn = (list: unknown): readonly string[] =>
  Array.isArray(list) ? list.map(String) : []

const about = (model: Fields): Probed => {
  const { modalities, capabilities, embedding_space } = model
  return {
    contextTokens: windowOf(model),
    modalities: stringsIn(modalities),
    capabilities: stringsIn(capabilities),
    embeddingSpace: typeof embedding_space === "string" ? embedding_space : undefined,
  }
}

const readList = (text: string, contentType: string, { options }: Upstream): Probed => {
  let list: unknown
  try {
    list = JSON.parse(text)
  } catch {
    throw failure(
      "misplaced",
      `it answers with ${contentType || "no type"}, not with JSON: correct url`,
    )
  }
  // TEI's /info names its one model
  if (options.kind === "tei") return about({})
  const data = isFields(list) && Array.isArray(list.data) ? list.data.filter(isFields) : undefined
  if (!data)
    throw failure("misplaced", "it has no list of models, so it is no OpenAI API: correct url")
  const found = data.find(
    ({ id, aliases }) =>
      isSame(id, options.model) ||
      (Array.isArray(aliases) && aliases.some((alias) => isSame(alias, options.model))),
  )
  if (found) return about(found)
  const names = data.slice(0, mostShown).map(({ id }) => `'${String(id).slice(0, 100)}'`)
  const more = data.length > mostShown ? ` and ${data.length - mostShown} more` : ""
  throw failure(
    "misplaced",
    `it does not serve '${options.model}', but ${names.length > 0 ? names.join(", ") : "nothing"}${more}: correct model, or serve it there`,
  )
}

/** What llama.cpp says of its chat template and model; older versions do not. */
const readProperties = (text: string): Partial<Record<Feature, boolean>> => {
  const properties: unknown = JSON.parse(text)
  const { chat_template_caps: template, modalities } = isFields(properties) ? properties : {}
  const tools = isFields(template) ? template.supports_tools : undefined
  const images = isFields(modalities) ? modalities.vision : undefined
  return {
    ...(typeof tools === "boolean" && { tools, tool_choice: tools, parallel_tool_calls: tools }),
    ...(typeof images === "boolean" && { images }),
  }
}

const ask = <A>(upstream: Upstream, path: string, read: (text: string, type: string) => A) =>
  Effect.gen(function* () {
    const reply = yield* upstream.connection.call(path, undefined, probeTimeoutMs)
    return yield* Effect.tryPromise({
      try: async () => {
        const bytes = await readUpTo(reply.body, maxListBytes)
        if (!bytes) throw failure("misplaced", "its list of models is too large")
        return read(bytes.toString(), reply.contentType)
      },
      catch: (cause) => connectionFailure(cause, true),
    })
  })

/**
 * Asks the upstream for its models: whether it is there, takes the key and has the model. One of
 * llama.cpp is asked what its template can do, too: tools that it has no place for it would drop.
 */
export const probe = (upstream: Upstream): Effect.Effect<Probed, UpstreamFailure> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { kind } = upstream.options
      const path = kind === "tei" ? "info" : "v1/models"
      const probed = yield* ask(upstream, path, (text, type) => readList(text, type, upstream))
      if (kind !== "llamacpp") return probed
      const asked = ask(upstream, "props", readProperties)
      const properties = yield* Effect.catch(asked, () => Effect.succeed(undefined))
      // without an answer what it said before holds
      if (properties) upstream.learn(properties)
      return probed
    }),
  ).pipe(
    Effect.timeoutOrElse({
      duration: probeTimeoutMs,
      orElse: () => Effect.fail(failure("slow", `no list of models within ${probeTimeoutMs} ms`)),
    }),
  )
