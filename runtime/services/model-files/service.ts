import { Data, type Effect } from "effect"
import type { ModelSource } from "../../../core/services/catalogue.ts"
import type { ModelId } from "../../../core/services/ids.ts"

export interface PullProgress {
  readonly model: ModelId
  readonly source: string
  readonly doneBytes: number
  /** Unknown while the server has not said. */
  readonly totalBytes: number | undefined
}

/** No source could be used; the message names each and why. */
export class ModelFilesMissing extends Data.TaggedError("ModelFilesMissing")<{
  readonly model: ModelId
  readonly message: string
}> {}

export interface ModelFiles {
  /** The local path of the model's file or folder; pulls what is missing. Two processes that pull the same model don't fight. */
  pull(
    model: ModelId,
    sources: readonly ModelSource[],
    onProgress: (progress: PullProgress) => void,
  ): Effect.Effect<string, ModelFilesMissing>
  /** The local path if it is there already; downloads nothing. */
  find(
    sources: readonly ModelSource[],
  ): Effect.Effect<
    { readonly path: string; readonly source: ModelSource; readonly bytes: number } | undefined
  >
  /** Hashes what is in the cache again. The texts say what is wrong. */
  verify(sources: readonly ModelSource[]): Effect.Effect<readonly string[]>
}
