import { createHash } from "node:crypto"
import { crc32, deflateSync } from "node:zlib"
import { Effect } from "effect"
import { apiError } from "../../core/errors.ts"
import type { ImageEvent } from "../../core/ports/image.ts"
import type { ImageRequest, LoadedModel } from "../../core/ports/model.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { usageOf } from "../../core/usage.ts"
import { type FakeModel, fakeEntry } from "./catalogue.ts"
import { type FakePace, type FakeRun, type FakeStep, refused, runSteps } from "./model-run.ts"

export interface FakeImageScript extends FakePace {
  readonly entry?: Partial<ModelEntry>
  /** Ids of its open LoRAs; `dark` and `anime` by default. */
  readonly adapters?: readonly string[]
  /** What it takes for settings that a request leaves out. */
  readonly defaults?: NonNullable<LoadedModel<"image">["imageDefaults"]>
  /** False: it makes pictures from text alone. */
  readonly edits?: boolean
  /** Ends without a picture, as no model should. */
  readonly withoutPicture?: boolean
}

export interface FakeImageModel extends FakeModel<"image"> {
  readonly runs: readonly FakeRun<ImageRequest>[]
}

const chunk = (type: string, data: Uint8Array): Buffer => {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(typed))
  return Buffer.concat([length, typed, sum])
}

/** A PNG file of two colours, by bytes of a hash: one above, one below. */
const pngOf = (width: number, height: number, colours: Uint8Array): Buffer => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 2], 8) // 8 bits of red, green and blue
  const rowOf = (at: number) =>
    Buffer.concat([Buffer.alloc(1), Buffer.alloc(3 * width, colours.subarray(at, at + 3))])
  const [upper, lower] = [rowOf(0), rowOf(3)]
  const rows = Array.from({ length: height }, (_, y) => (2 * y < height ? upper : lower))
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.concat(rows), { level: 1 })),
    chunk("IEND", new Uint8Array()),
  ])
}

/** Everything that a picture depends on, and the step that it is seen at. */
const coloursOf = (
  { images, previews: _, unsaid: __, ...request }: ImageRequest,
  step: number,
): Uint8Array => {
  const hash = createHash("sha256").update(JSON.stringify([request, step]))
  for (const bytes of images) hash.update(createHash("sha256").update(bytes).digest())
  return hash.digest()
}

const stepsOf = (request: ImageRequest, withoutPicture: boolean) =>
  Array.from({ length: request.steps }, (_, index): FakeStep<ImageEvent> => {
    const { steps, width, height, previews = 0 } = request
    const step = index + 1
    const seen = Math.floor((step * previews) / steps)
    const isShown = seen > Math.floor((index * previews) / steps)
    const isLast = step === steps
    return {
      // made when the step runs: a plan is cheap
      get events(): readonly ImageEvent[] {
        const preview = isShown && pngOf(width >> 3, height >> 3, coloursOf(request, step))
        const event = { type: "step", step, steps, ...(preview && { preview }) } as const
        if (!isLast || withoutPicture) return [event]
        const bytes = pngOf(width, height, coloursOf(request, 0))
        return [event, { type: "image", mediaType: "image/png", bytes }]
      },
      usage: usageOf({ images: isLast ? 1 : 0 }),
    }
  })

/** Paints two colours by a hash of the request: equal requests have equal pictures. */
export const fakeImageModel = (script: FakeImageScript = {}): FakeImageModel => {
  const { adapters = ["dark", "anime"], edits = true, withoutPicture = false } = script
  const ownCapabilities = edits ? ["image_editing"] : []
  const modalities = edits ? ["text", "image"] : ["text"]
  const entry = fakeEntry("image", {
    modalities,
    capabilities: ["image_generation", ...ownCapabilities],
    ...script.entry,
  })
  const runs: FakeRun<ImageRequest>[] = []
  const plan: LoadedModel<"image">["task"]["plan"] = (request, context) =>
    Effect.gen(function* () {
      yield* refused(script)
      if (request.images.length > 0 && !edits)
        return yield* apiError("unsupported_parameter", "This model takes no images.", {
          param: "images",
        })
      return {
        bound: usageOf({ images: 1 }),
        run: runSteps(runs, entry.id, script, request, context, stepsOf(request, withoutPicture)),
      }
    })
  return {
    entry,
    runs,
    loaded: {
      task: { plan },
      contextTokens: entry.contextTokens,
      modalities,
      capabilities: ownCapabilities,
      adapters,
      ...(script.defaults && { imageDefaults: script.defaults }),
      servedBy: "fake",
    },
  }
}
