import { hash, webcrypto } from "node:crypto"
import { Effect } from "effect"
import type { Json } from "../../core/json.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import type { Media } from "./media.ts"
import type { ChatBody } from "./request-schema.ts"

/** How values are written for a digest. Paths have no indexes. */
interface Form {
  /** Values at these paths stay as they came. */
  readonly verbatim?: ReadonlySet<string>
  /** Whether a member is left out, by its key, its JSON and its path. */
  readonly omits?: (key: string, json: string, path: string) => boolean
}

/** JSON with sorted keys, so that the same value has the same digest. */
const canonicalJson = (value: unknown, form: Form, path = ""): string => {
  if (form.verbatim?.has(path)) return JSON.stringify(value)
  if (Array.isArray(value))
    return `[${value.map((item) => canonicalJson(item, form, path)).join()}]`
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null"
  const object = value as Readonly<Record<string, unknown>>
  let text = ""
  for (const key of Object.keys(object).sort()) {
    if (object[key] === undefined) continue
    const at = path === "" ? key : `${path}.${key}`
    const json = canonicalJson(object[key], form, at)
    if (!form.omits?.(key, json, at)) text += `${text && ","}${JSON.stringify(key)}:${json}`
  }
  return `{${text}}`
}

const sha256 = (text: string): string => `sha256:${hash("sha256", text)}`

const digestOf = (value: unknown, form: Form = {}): string => sha256(canonicalJson(value, form))

const without = (value: object, keys: readonly string[]): object =>
  Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)))

const configDigests = new WeakMap<ModelEntry, string>()

/** The digest of what the deployment says about a model: computed once for each entry. */
const configDigest = (entry: ModelEntry): string => {
  const known = configDigests.get(entry)
  if (known !== undefined) return known
  const digest = digestOf({
    ...without(entry, ["price", "description", "sources"]),
    adapters: entry.adapters.map(({ id }) => id),
  })
  configDigests.set(entry, digest)
  return digest
}

/** The JSON Schemas of a request, by their paths without indexes. */
const schemaPaths = new Set([
  "tools.function.parameters",
  "response_format.json_schema.schema",
  "guided_json",
  "structured_outputs.json",
  "json_schema",
])

const delivery = new Set(["stream", "stream_options", "seed"])

/**
 * Fields of the API, in any order, where a null, or an object of nothing else, is as if absent.
 * A JSON Schema stays as it came: the order of its keys is that of the answer's, or is read by the
 * model, and a null in it is a value.
 */
const requestForm: Form = {
  verbatim: schemaPaths,
  omits: (_, json, path) =>
    delivery.has(path) || json === "null" || (json === "{}" && !schemaPaths.has(path)),
}

/**
 * The seed, which the receipt names, and how an answer is delivered don't belong to the digest; the
 * files of model and adapters, wherever they come from, have one of their own.
 */
export const requestEvidence = (body: ChatBody, entry: ModelEntry) => ({
  request: digestOf(body, requestForm),
  config: configDigest(entry),
})

/**
 * The digest of the files that the model gets: what is at an address may change, and which frames
 * are taken of a video is a setting. Hashed in Node's threads, as they may have 50 MB.
 */
export const mediaEvidence = Effect.fnUntracedEager(function* (media: Media) {
  if (media.size === 0) return {}
  const digests: string[] = []
  for (const part of [...media.values()].flat()) {
    if (part.type !== "media") continue
    const bytes = part.bytes as Uint8Array<ArrayBuffer>
    const digest = yield* Effect.promise(() => webcrypto.subtle.digest("SHA-256", bytes))
    digests.push(Buffer.from(digest).toString("hex"))
  }
  return { media: sha256(digests.join()) }
})

/** The digest of what a completion says: its choices, without ids of calls, drawn anew each time. */
export const answerEvidence = (completion: Json) => ({
  answer: digestOf((completion as { readonly choices: Json }).choices, {
    omits: (key) => key === "id",
  }),
})
