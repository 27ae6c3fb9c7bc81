import type { LoadedModel, ModelEntry } from "../../../core/index.ts"
import type { VectorSpace } from "./vector-store.ts"

/** Where vectors of the model are kept, which have `length` numbers as it makes them. */
export const spaceOf = (
  { id }: Pick<ModelEntry, "id">,
  { embeddingSpace = id, embeddingWidth }: LoadedModel<"embed">,
  length: number,
): VectorSpace => ({ id: embeddingSpace, dimensions: Math.min(embeddingWidth ?? length, length) })
