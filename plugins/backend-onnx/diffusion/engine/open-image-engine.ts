import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { digestOf, knownIn } from "../../onnx/graph-cache.ts"
import { explaining } from "../../weights/model-file-error.ts"
import type { EngineOpener, OpenEngine } from "../../worker/open-engine.ts"
import type { EngineSpec } from "../../worker/protocol.ts"
import { Stepped } from "../../worker/stepped.ts"
import { SteppedRunner } from "../../worker/stepped-runner.ts"
import { openPipelineFolder, schedulerIn } from "../folder/pipeline-folder.ts"
import type { ImageModel } from "../model.ts"
import { imageFamily } from "../pipelines/families.ts"
import { mostSteps, openSchedule } from "../schedulers/open-schedule.ts"
import type { ImageInfo, ImageJobEvent, ImageJobRequest } from "./image-job.ts"
import { paint, unpromptedOf } from "./paint.ts"

const defaultTileSize = 512

type Digests = Pick<ImageInfo, "digest" | "adapterDigests">

/** The engine of a model that is open in this thread. */
export const imageEngine = (
  model: ImageModel,
  digests: Digests = { digest: "", adapterDigests: {} },
): OpenEngine<ImageJobRequest, ImageJobEvent, ImageInfo, Stepped> => {
  const unprompted = unpromptedOf(model)
  const { scheduler, sources, maxSources, sourcePixels, maxSide } = model.info
  const { parts = [], adapters = [], adapterBytes = 0 } = model.info
  const maxSteps = mostSteps(scheduler)
  return {
    info: {
      ...{ sources, maxSources, parts, adapters, adapterBytes, ...digests },
      ...(maxSteps !== undefined && { maxSteps }),
      ...(sourcePixels !== undefined && { sourcePixels }),
      ...(maxSide !== undefined && { maxSide }),
    },
    runner: new SteppedRunner(),
    start: (request, emit) =>
      new Stepped((pause) => paint({ model, unprompted }, request, emit, pause)),
    close: () => model.close(),
  }
}

/** A file, or the files of a folder and of those in it, by their names and contents. */
const contentsIn = (graphs: string, path: string): readonly unknown[] => {
  const known = knownIn(graphs)
  if (statSync(path).isFile()) return [known.of(path)]
  return readdirSync(path, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(path, name)).isFile())
    .sort()
    .map((name) => [name, known.of(join(path, name))])
}

/** `loras`: ids of the adapters that requests choose; others are parts of the model. */
const digestsOf = (spec: EngineSpec, loras: readonly string[]): Digests => {
  const { path, graphs, precision, image, adapters = [] } = spec
  const contents = adapters.map(
    (adapter) => [adapter.id, contentsIn(graphs, adapter.path)] as const,
  )
  const parts = contents.filter(([id]) => !loras.includes(id))
  return {
    digest: digestOf([
      "image",
      contentsIn(graphs, path),
      parts,
      precision,
      image?.tileSize ?? defaultTileSize,
    ]),
    adapterDigests: Object.fromEntries(
      contents.flatMap(([id, files]) => (loras.includes(id) ? [[id, digestOf(files)]] : [])),
    ),
  }
}

/** Opens the folder of an image model in the layout of diffusers. */
export const openImageEngine: EngineOpener<
  ImageJobRequest,
  ImageJobEvent,
  ImageInfo,
  Stepped
> = async (spec, progress) => {
  const { path, graphs, device, threads, precision, adapters = [], adapterBytes = 0, image } = spec
  progress("reading the model")
  const family = imageFamily(path)
  // what this backend has not is refused now, not at the first request
  const scheduler = schedulerIn(openPipelineFolder(path))
  explaining(join(path, "scheduler", "scheduler_config.json"), () =>
    openSchedule(scheduler, { steps: 1, tokens: 256 }),
  )
  const model = await family.open(path, {
    graphs,
    device,
    threads,
    precision,
    offload: image?.offload ?? false,
    tileSize: image?.tileSize ?? defaultTileSize,
    adapters,
    adapterBytes,
    progress,
  })
  return imageEngine(model, digestsOf(spec, model.info.adapters ?? []))
}
