import type { LoadedModel, ModelEntry } from "../../../core/index.ts"

/** Vectors of different spaces are never compared. */
export interface VectorSpace {
  /** `embeddingSpace` of the model. */
  readonly id: string
  /** So many first numbers of a vector are kept, normalized. */
  readonly dimensions: number
}

/** Where vectors of the model are kept, which have `length` numbers as it makes them. */
export const spaceOf = (
  { id }: Pick<ModelEntry, "id">,
  { embeddingSpace = id, embeddingWidth }: LoadedModel<"embed">,
  length: number,
): VectorSpace => ({ id: embeddingSpace, dimensions: Math.min(embeddingWidth ?? length, length) })
