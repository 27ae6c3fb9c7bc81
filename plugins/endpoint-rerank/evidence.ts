import { hash } from "node:crypto"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import type { RerankBody, RerankReply } from "./schema.ts"

const digestOf = (value: unknown): string => `sha256:${hash("sha256", JSON.stringify(value))}`

const configDigests = new WeakMap<ModelEntry, string>()

/** The digest of what the deployment says about a model: computed once for each entry. */
const configDigest = (entry: ModelEntry): string => {
  const known = configDigests.get(entry)
  if (known !== undefined) return known
  const { id, backend, contextTokens, options } = entry
  const digest = digestOf([id, backend, contextTokens, options])
  configDigests.set(entry, digest)
  return digest
}

/** What a receipt says of a ranking. Results have no id of their own, so equal ones are equal bytes. */
export const evidenceOf = (
  { query, documents, instruction, top_n, return_documents, ...limits }: RerankBody,
  entry: ModelEntry,
  results: RerankReply["results"],
) => ({
  request: digestOf([
    ...[query, documents, instruction, top_n, return_documents === true],
    ...[limits.max_tokens_per_doc, limits.max_chunks_per_doc],
  ]),
  config: configDigest(entry),
  answer: digestOf(results),
})
