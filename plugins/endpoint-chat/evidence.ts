import { createHash } from "node:crypto"
import type { Json } from "../../core/json.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import type { ChatBody } from "./request-schema.ts"

/** JSON with sorted keys, so that the same value has the same digest. */
const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(canonical)
  if (value === null || typeof value !== "object") return value
  const sorted = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(sorted.map(([key, inner]) => [key, canonical(inner)]))
}

const digestOf = (value: unknown): string =>
  `sha256:${createHash("sha256")
    .update(JSON.stringify(canonical(value)))
    .digest("hex")}`

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

/**
 * The seed, which the receipt names, and how an answer is delivered don't belong to the digest; the
 * files of model and adapters, wherever they come from, have one of their own.
 */
export const requestEvidence = (body: ChatBody, entry: ModelEntry) => ({
  request: digestOf(without(body, ["stream", "stream_options", "seed"])),
  config: configDigest(entry),
})

/** Ids of calls are drawn anew each time. */
const withoutIds = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(withoutIds)
  if (value === null || typeof value !== "object") return value
  const kept = Object.entries(value).filter(([key]) => key !== "id")
  return Object.fromEntries(kept.map(([key, inner]) => [key, withoutIds(inner as Json)]))
}

/** The digest of what a completion says: its choices. */
export const answerEvidence = (completion: Json) => ({
  answer: digestOf(withoutIds((completion as { readonly choices: Json }).choices)),
})
