import { Effect } from "effect"
import { type ApiError, apiError, type LoadedModel, type ModelEntry } from "../../../core/index.ts"

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

/** Whether its cosines are numbers: a vector with a NaN would rank first or last everywhere. */
const hasDirection = (vector: Float32Array, dimensions: number): boolean => {
  let squares = 0
  for (const value of vector.subarray(0, dimensions)) squares += value * value
  return squares > 0 && Number.isFinite(squares)
}

/** Fails with `backend_error` where a model made a vector that can't be compared with others. */
export const checkVectors = (
  { dimensions }: VectorSpace,
  vectors: readonly Float32Array[],
): Effect.Effect<void, ApiError> =>
  vectors.every((vector) => hasDirection(vector, dimensions))
    ? Effect.void
    : Effect.fail(apiError("backend_error", "The model made a vector without a direction."))
