// decoders for what demuxes, which looks for those of a browser
import "@napi-rs/webcodecs/polyfill"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import {
  BufferSource,
  EncodedPacketSink,
  Input,
  type InputVideoTrack,
  MATROSKA,
  MP4,
  QTFF,
  type VideoSample,
  VideoSampleSink,
  WEBM,
} from "mediabunny"
import sharp from "sharp"
import { type CodedSize, codedSizes } from "./coded-sizes.ts"

export interface VideoFramesInput {
  readonly bytes: Uint8Array
  /** Frames that are taken of a second, and of the whole. */
  readonly perSecond: number
  readonly most: number
  readonly maxSeconds: number
}

/** Frames as PNG files in their order, or what is wrong with the video. */
export type VideoFrames =
  | { readonly frames: readonly Uint8Array[]; readonly seconds: number }
  | { readonly refused: string }

/** As many as a frame of 2560 x 1600 has: decoding takes the memory of about a hundred frames. */
const maxPixels = 2560 * 1600
/** The longer side of a frame for the model. */
const longestSide = 1024
const decodeMs = 15_000

// The memory of decoded frames is freed by garbage collection alone, which does not see how large they
// are: 30 s of 1920 x 1080 took up to 2 GB, and 0.3 GB with a collection every 50 ms
const collectMs = 50
setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void
setFlagsFromString("--no-expose-gc")

/** The times of the frames: evenly, in the middle of the parts where there are too many seconds. */
export const frameTimes = (
  seconds: number,
  { perSecond, most }: Pick<VideoFramesInput, "perSecond" | "most">,
): readonly number[] => {
  const count = Math.max(1, Math.ceil(seconds * perSecond))
  return count <= most
    ? Array.from({ length: count }, (_, at) => at / perSecond)
    : Array.from({ length: most }, (_, at) => ((at + 0.5) * seconds) / most)
}

/** Pictures are coded in whole blocks, so up to 15 pixels of a side may be cut off again: `spare`. */
const tooManyPixels = ({ width, height }: CodedSize, spare = 0) =>
  Math.max(0, width - spare) * Math.max(0, height - spare) > maxPixels
    ? `has ${width} x ${height} pixels; at most ${maxPixels.toLocaleString("en")} are taken`
    : undefined

const blockSpare = 15

/** What is wrong with a video by its header, and by those of its packets, before any is decoded. */
const wrongTrack = async (track: InputVideoTrack): Promise<string | undefined> => {
  const description: unknown = (await track.getDecoderConfig())?.description
  const record = description instanceof Uint8Array ? description : undefined
  const coded = codedSizes(track.codec ?? "", record)
  if (!coded || !(await track.canDecode())) return "has a codec that this server can't decode"
  const [width, height] = [track.codedWidth, track.codedHeight]
  const wrong = tooManyPixels({ width, height })
  if (wrong !== undefined) return wrong
  const largest = (sizes: readonly CodedSize[]) =>
    sizes.map((size) => tooManyPixels(size, blockSpare)).find(Boolean)
  const wrongRecord = largest(coded.first)
  if (wrongRecord !== undefined) return wrongRecord
  for await (const { data, sideData } of new EncodedPacketSink(track).packets()) {
    const found = largest([...coded.of(data), ...(sideData.alpha ? coded.of(sideData.alpha) : [])])
    if (found !== undefined) return found
  }
  return undefined
}

// the types here are those of Node, which knows no formats
const asPixels: object = { format: "RGBX" }

/** A frame as it is shown, small enough. */
const toPng = async (sample: VideoSample): Promise<Uint8Array> => {
  const { codedWidth: width, codedHeight: height, displayWidth, displayHeight, rotation } = sample
  const wrong = tooManyPixels({ width, height })
  if (wrong !== undefined) throw new Refusal(wrong)
  const pixels = new Uint8Array(sample.allocationSize(asPixels))
  await sample.copyTo(pixels, asPixels)
  // displayed sizes are those after the rotation
  const isTurned = rotation % 180 !== 0
  const shape = isTurned
    ? { width: displayHeight, height: displayWidth }
    : { width: displayWidth, height: displayHeight }
  const scale = Math.min(1, longestSide / Math.max(shape.width, shape.height))
  const side = (length: number) => Math.max(1, Math.round(length * scale))
  return sharp(pixels, { raw: { width, height, channels: 4 } })
    .removeAlpha()
    .resize({ width: side(shape.width), height: side(shape.height), fit: "fill" })
    .rotate(rotation)
    .png({ compressionLevel: 1 })
    .toBuffer()
}

class Refusal extends Error {}

const framesOf = async (
  track: InputVideoTrack,
  seconds: number,
  input: VideoFramesInput,
): Promise<readonly Uint8Array[]> => {
  const first = await track.getFirstTimestamp()
  const times = frameTimes(seconds, input).map((time) => first + time)
  const endMs = performance.now() + decodeMs
  const frames: Uint8Array[] = []
  for await (const sample of new VideoSampleSink(track).samplesAtTimestamps(times)) {
    if (!sample) throw new Refusal("is cut or damaged: a frame of it is missing")
    try {
      frames.push(await toPng(sample))
    } finally {
      sample.close()
    }
    if (performance.now() > endMs) throw new Refusal("takes too long to decode")
  }
  if (frames.length < times.length) throw new Refusal("is cut or damaged: a frame of it is missing")
  return frames
}

const whole = async (file: Input, input: VideoFramesInput): Promise<VideoFrames> => {
  if (!(await file.canRead())) return { refused: "is no MP4, MOV, WebM or Matroska" }
  const track = await file.getPrimaryVideoTrack()
  if (!track) return { refused: "has no pictures, or is cut" }
  const wrong = await wrongTrack(track)
  if (wrong !== undefined) return { refused: wrong }
  const seconds = (await track.computeDuration()) - (await track.getFirstTimestamp())
  if (!(seconds > 0)) return { refused: "has no frames, or is cut" }
  const { maxSeconds } = input
  if (seconds > maxSeconds)
    return { refused: `has ${Math.ceil(seconds)} seconds; at most ${maxSeconds} are taken` }
  return { frames: await framesOf(track, seconds, input), seconds }
}

/** Demuxes a video and decodes some of its frames. Runs in the thread pool. */
export default async (input: VideoFramesInput): Promise<VideoFrames> => {
  const { bytes } = input
  const source = new BufferSource(bytes)
  const file = new Input({ source, formats: [MP4, QTFF, MATROSKA, WEBM] })
  const collecting = setInterval(collect, collectMs)
  try {
    return await whole(file, input)
  } catch (cause) {
    return { refused: cause instanceof Refusal ? cause.message : "is cut or damaged" }
  } finally {
    clearInterval(collecting)
    file.dispose()
  }
}
