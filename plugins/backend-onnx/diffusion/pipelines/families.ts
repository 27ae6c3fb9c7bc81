import { join } from "node:path"
import { explaining, Unsupported } from "../../weights/model-file-error.ts"
import { openPipelineFolder } from "../folder/pipeline-folder.ts"
import type { OpenImageModel } from "../model.ts"
import { openFlux } from "./flux.ts"
import { openFlux2 } from "./flux2.ts"
import { openIris, textEncoderId } from "./iris.ts"
import { openSd3 } from "./sd3.ts"
import { openStableDiffusion } from "./stable-diffusion.ts"

/** A family of image models. */
export interface ImageFamily {
  readonly open: OpenImageModel
  /** Whether it takes pictures beside the prompt. */
  readonly edits: boolean
  /** Ids of adapters that are parts of the model, and no LoRAs. */
  readonly parts?: readonly string[]
}

/** By the `_class_name` of model_index.json. */
const families: Readonly<Record<string, ImageFamily>> = {
  StableDiffusionPipeline: { open: openStableDiffusion, edits: true },
  LatentConsistencyModelPipeline: { open: openStableDiffusion, edits: true },
  StableDiffusion3Pipeline: { open: openSd3, edits: true },
  FluxPipeline: { open: openFlux, edits: true },
  FluxKontextPipeline: { open: openFlux, edits: true },
  IrisPipeline: { open: openIris, edits: true, parts: [textEncoderId] },
  Flux2KleinPipeline: { open: openFlux2, edits: true },
}

/** The family of a folder in the layout of diffusers. Throws `ModelFileError`. */
export const imageFamily = (path: string): ImageFamily => {
  const { family } = openPipelineFolder(path)
  return explaining(join(path, "model_index.json"), () => {
    const known = families[family]
    if (!known)
      throw new Unsupported(
        `its class is ${family}; this backend has ${Object.keys(families).join(", ")}`,
      )
    return known
  })
}
