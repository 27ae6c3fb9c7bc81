import { Effect } from "effect"
import type { ModelId } from "../../../core/services/ids.ts"
import type { Log } from "../../../core/services/log.ts"
import type { ModelSource } from "../../../core/services/model-entry.ts"
import type { ModelFiles } from "./model-files.ts"
import { ModelFilesMissing, type PullProgress } from "./pull.ts"

/** Hashes the source that is in use, and returns what is wrong with it. */
const damageIn = (
  files: ModelFiles,
  sources: readonly ModelSource[],
): Effect.Effect<readonly string[]> =>
  Effect.flatMap(files.find(sources), (found) =>
    found ? files.verify([found.source]) : Effect.succeed([]),
  )

/**
 * Pulls, and hashes what is in the cache already: a damaged file is pulled again, and refused if it
 * is still damaged.
 * `pull` alone checks only sizes.
 */
export const pullVerified = (
  files: ModelFiles,
  log: Log,
  model: ModelId,
  sources: readonly ModelSource[],
  onProgress: (progress: PullProgress) => void,
): Effect.Effect<string, ModelFilesMissing> =>
  Effect.gen(function* () {
    const damage = yield* damageIn(files, sources)
    if (damage.length > 0)
      log.warn("model.files_damaged", "model files are damaged and pulled anew", {
        model,
        damage: damage.join("; "),
      })
    const path = yield* files.pull(model, sources, onProgress)
    const left = damage.length > 0 ? yield* damageIn(files, sources) : []
    if (left.length > 0)
      return yield* new ModelFilesMissing({
        model,
        message: `The files of model ${model} are damaged: ${left.join("; ")}`,
      })
    return path
  })
