import { fileURLToPath } from "node:url"
import { InferenceSession, Tensor } from "onnxruntime-node"
import sharp from "sharp"
import type { Classes } from "./classes.ts"
import { counted } from "./native-calls.ts"

export interface ClassifyInput {
  /** A PNG file. */
  readonly bytes: Uint8Array
  /** The words that native-calls.ts shares. */
  readonly calls: Int32Array
}

/** The compiled copy of this module has no weights near it. */
const model = fileURLToPath(
  new URL(
    import.meta.url.endsWith(".ts")
      ? "../weights/nsfwjs-mobilenet-v2.onnx"
      : "../../../../plugins/safety-images/weights/nsfwjs-mobilenet-v2.onnx",
    import.meta.url,
  ),
)
/** As many as 4096 x 4096 has. */
const maxPixels = 2 ** 24
const limitSeconds = 10

const open = (): Promise<InferenceSession> =>
  InferenceSession.create(model, {
    executionProviders: ["cpu"],
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    logSeverityLevel: 3,
    // between two pictures the 17 MB of its buffers belong to others
    enableCpuMemArena: false,
  })

/** One for each thread. */
let session: InferenceSession | undefined

const pixelsOf = async (bytes: Uint8Array): Promise<Tensor> => {
  const { data, info } = await sharp(bytes, { failOn: "error", limitInputPixels: maxPixels })
    .timeout({ seconds: limitSeconds })
    .flatten({ background: "white" })
    .toColourspace("srgb")
    .raw({ depth: "uchar" })
    .toBuffer({ resolveWithObject: true })
  return new Tensor("uint8", data, [1, info.height, info.width, info.channels])
}

const isPng = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes.subarray(0, 8)).toString("latin1") === "\u0089PNG\r\n\u001a\n"

/** Runs in the thread pool. */
export default async ({ bytes, calls }: ClassifyInput): Promise<Classes> => {
  if (!isPng(bytes)) throw new Error("the picture is no PNG file")
  const pixels = await pixelsOf(bytes)
  const { probabilities } = await counted(calls, async () => {
    session ??= await open()
    return session.run({ pixels })
  })
  // in the order of nsfwjs
  const [drawing, hentai, neutral, porn, sexy] = probabilities!.data as Float32Array
  return { drawing: drawing!, hentai: hentai!, neutral: neutral!, porn: porn!, sexy: sexy! }
}
