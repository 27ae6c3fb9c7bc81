import { Effect } from "effect"
import type { LoadedModel } from "../../core/ports/model.ts"
import type { ImageInfo, ImageJobEvent, ImageJobRequest } from "./diffusion/engine/image-job.ts"
import { type OpenEntry, optionsOf, shape } from "./opening.ts"
import { entryOptions } from "./options.ts"
import { makeImageTask } from "./tasks/image-task.ts"

/** What an image model can do; `edits`: it takes pictures beside the prompt. */
export const imageAbilities = (edits: boolean) => ({
  modalities: edits ? ["text", "image"] : ["text"],
  capabilities: edits ? ["image_editing"] : [],
})

/** Opens a folder in the layout of diffusers. */
export const openImage: OpenEntry = Effect.fnUntraced(function* (deps, engineOf, request) {
  const options = yield* optionsOf(entryOptions.image, request)
  const { precision, queueWaitMs, slots, steps, guidanceScale, ...image } = options
  const { engine } = yield* engineOf<ImageJobRequest, ImageJobEvent, ImageInfo>(
    // two jobs would take turns in loading their parts
    { kind: "image", precision, image, slots: image.offload ? 1 : slots },
    request,
  )
  const { sources, parts, adapters, adapterBytes } = engine.info
  return {
    ...shape,
    ...imageAbilities(sources !== "none"),
    task: makeImageTask({ id: request.id, engine, queueWaitMs, ...deps.services() }),
    contextTokens: request.contextTokens,
    imageDefaults: {
      ...(steps !== undefined && { steps }),
      ...(guidanceScale !== undefined && { guidanceScale }),
    },
    adapters,
    parts,
    stats: () => ({ ...engine.stats(), reproducible: 1, adapterBytes }),
  } satisfies LoadedModel<"image">
})
