import { join } from "node:path"
import { explaining } from "../../weights/model-file-error.ts"
import type { EngineOpener, OpenEngine } from "../../worker/open-engine.ts"
import { openPipelineFolder, schedulerIn } from "../folder/pipeline-folder.ts"
import type { Condition, ImageModel } from "../model.ts"
import { imageFamily } from "../pipelines/families.ts"
import { openSchedule } from "../schedulers/open-schedule.ts"
import type { ImageInfo, ImageJobEvent, ImageJobRequest } from "./image-job.ts"
import { ImageRunner } from "./image-runner.ts"
import { paint } from "./paint.ts"
import { Stepped } from "./stepped.ts"

const defaultTileSize = 512

/** The engine of a model that is open in this thread. */
export const imageEngine = (
  model: ImageModel,
): OpenEngine<ImageJobRequest, ImageJobEvent, ImageInfo, Stepped> => {
  let empty: Promise<Condition> | undefined
  const unprompted = (): Promise<Condition> => {
    empty ??= model.encodePrompt("")
    // a failure is that of one request, not of all that come after it
    empty.catch(() => {
      empty = undefined
    })
    return empty
  }
  const { sources, maxSources, adapters = [], adapterBytes = 0 } = model.info
  return {
    info: { sources, maxSources, adapters, adapterBytes },
    runner: new ImageRunner(),
    start: (request, emit) =>
      new Stepped((pause) => paint({ model, unprompted }, request, emit, pause)),
    close: () => model.close(),
  }
}

/** Opens the folder of an image model in the layout of diffusers. */
export const openImageEngine: EngineOpener<
  ImageJobRequest,
  ImageJobEvent,
  ImageInfo,
  Stepped
> = async (spec, progress) => {
  const { path, graphs, threads, precision, adapters = [], adapterBytes = 0, image } = spec
  progress("reading the model")
  const family = imageFamily(path)
  // what this backend has not is refused now, not at the first request
  const scheduler = schedulerIn(openPipelineFolder(path))
  explaining(join(path, "scheduler", "scheduler_config.json"), () =>
    openSchedule(scheduler, { steps: 1, tokens: 256 }),
  )
  const model = await family.open(path, {
    graphs,
    threads,
    precision,
    offload: image?.offload ?? false,
    tileSize: image?.tileSize ?? defaultTileSize,
    adapters,
    adapterBytes,
    progress,
  })
  return imageEngine(model)
}
