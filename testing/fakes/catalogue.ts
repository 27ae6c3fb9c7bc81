import type { LoadedModel, TaskName } from "../../core/ports/model.ts"
import { parsePrice } from "../../core/pricing.ts"
import { type Catalogue, makeCatalogue } from "../../core/services/catalogue.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"

/** An open model, and its catalogue entry. */
export interface FakeModel<T extends TaskName = TaskName> {
  readonly entry: ModelEntry
  readonly loaded: LoadedModel<T>
}

const defaults: Record<
  TaskName,
  Pick<ModelEntry, "id" | "contextTokens" | "maxOutputTokens" | "capabilities" | "price">
> = {
  chat: {
    id: "svc-lyt",
    contextTokens: 4096,
    maxOutputTokens: 1024,
    capabilities: ["chat"],
    price: parsePrice({ input: 1500, output: 6000 }),
  },
  embed: {
    id: "svc-embed",
    contextTokens: 256,
    maxOutputTokens: 0,
    capabilities: ["embeddings"],
    price: parsePrice({ input: 1500, image: 25 }),
  },
  rerank: {
    id: "svc-rerank",
    contextTokens: 512,
    maxOutputTokens: 0,
    capabilities: ["rerank"],
    price: parsePrice({ searchUnit: 2.5 }),
  },
  image: {
    id: "svc-iris",
    contextTokens: 512,
    maxOutputTokens: 0,
    capabilities: ["image_generation"],
    price: parsePrice({ image: 750 }),
  },
  transcribe: {
    id: "svc-dengar",
    contextTokens: 448,
    maxOutputTokens: 0,
    capabilities: ["transcription"],
    price: parsePrice({ audioSecond: 1.5 }),
  },
}

/** A catalogue entry with list prices; `more` overrides. */
export const fakeEntry = (task: TaskName, more: Partial<ModelEntry> = {}): ModelEntry => ({
  task,
  tier: "test",
  ownedBy: "tests",
  description: `A fake model for ${task}`,
  defaultMaxTokens: 64,
  modalities: ["text"],
  backend: "fake",
  sources: [],
  adapters: [],
  options: {},
  ...defaults[task],
  ...more,
})

/** A catalogue in which all of these models are ready; `set` changes that. */
export const fakeCatalogue = (...models: readonly FakeModel[]): Catalogue => {
  const catalogue = makeCatalogue(models.map((model) => model.entry))
  for (const { entry, loaded } of models) catalogue.set(entry.id, { state: "ready", loaded })
  return catalogue
}
