import { join } from "node:path"
import { explaining, Unsupported } from "../../weights/model-file-error.ts"
import { openPipelineFolder, textEncoderId } from "../folder/pipeline-folder.ts"
import type { OpenImageModel } from "../model.ts"

/** A family of image models. */
export interface ImageFamily {
  readonly open: OpenImageModel
  /** Whether it takes pictures beside the prompt. */
  readonly edits: boolean
  /** Ids of adapters that are parts of the model, and no LoRAs. */
  readonly parts?: readonly string[]
}

// loaded by the thread that opens one: the server's own only asks what a family can do
const openFlux: OpenImageModel = async (...own) => (await import("./flux.ts")).openFlux(...own)
const openFlux2: OpenImageModel = async (...own) => (await import("./flux2.ts")).openFlux2(...own)
const openIris: OpenImageModel = async (...own) => (await import("./iris.ts")).openIris(...own)
const openSd3: OpenImageModel = async (...own) => (await import("./sd3.ts")).openSd3(...own)
const openStableDiffusion: OpenImageModel = async (...own) =>
  (await import("./stable-diffusion.ts")).openStableDiffusion(...own)

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
