import { join } from "node:path"
import { explaining, Unsupported } from "../../weights/model-file-error.ts"
import { openPipelineFolder } from "../folder/pipeline-folder.ts"
import type { OpenImageModel } from "../model.ts"

/** A family of image models. */
export interface ImageFamily {
  readonly open: OpenImageModel
  /** Whether it takes pictures beside the prompt. */
  readonly edits: boolean
}

/** By the `_class_name` of model_index.json. */
const families: Readonly<Record<string, ImageFamily>> = {}

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
