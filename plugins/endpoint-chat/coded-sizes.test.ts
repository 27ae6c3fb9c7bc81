import { readFileSync } from "node:fs"
import { join } from "node:path"
import { BufferSource, EncodedPacketSink, Input, MATROSKA, MP4, QTFF, WEBM } from "mediabunny"
import { expect, it, vi } from "vitest"
import { type CodedSize, codedSizes } from "./coded-sizes.ts"
import decodeVideo from "./video-frames-job.ts"

const clip = (name: string) => readFileSync(join(import.meta.dirname, "fixtures", name))

const sizesIn = async (file: Buffer): Promise<ReadonlySet<string>> => {
  const source = new BufferSource(file)
  const input = new Input({ source, formats: [MP4, QTFF, MATROSKA, WEBM] })
  const track = (await input.getPrimaryVideoTrack())!
  const config = await track.getDecoderConfig()
  const read = codedSizes(track.codec!, config?.description as Uint8Array | undefined)!
  const sizes: CodedSize[] = [...read.first]
  for await (const { data } of new EncodedPacketSink(track).packets()) sizes.push(...read.of(data))
  return new Set(sizes.map(({ width, height }) => `${width} x ${height}`))
}

it.each([
  ["colours.mp4", "96 x 64"], // H.264
  ["colours.mov", "96 x 64"], // HEVC
  ["colours.webm", "96 x 64"], // VP9
  ["colours.mkv", "96 x 64"], // AV1
  ["large.mp4", "2576 x 1616"],
])("packets of %s have frames of %s", async (name, size) => {
  expect([...(await sizesIn(clip(name)))]).toEqual([size])
})

const bytesOf = (bits: string): Buffer =>
  Buffer.from((bits.match(/.{1,8}/g) ?? []).map((byte) => Number.parseInt(byte.padEnd(8, "0"), 2)))
const side = (pixels: number) => (pixels - 1).toString(2).padStart(16, "0")

it("a frame of VP9 between key frames may have a size of its own", () => {
  const { of } = codedSizes("vp9")!
  // profile 0, no key frame, shown; three references
  const head = `10_00_0_1_1_0_00_00000000_${"0000".repeat(3)}`.replaceAll("_", "")
  const small = bytesOf(`${head}1`)
  const large = bytesOf(`${head}000${side(16_384)}${side(8_192)}`)
  expect(of(small)).toEqual([])
  expect(of(large)).toEqual([{ width: 16_384, height: 8_192 }])
  // a packet of two frames, whose index is at its end
  const index = Buffer.from([0b110_00_001, small.length, large.length, 0b110_00_001])
  expect(of(Buffer.concat([small, large, index]))).toEqual([{ width: 16_384, height: 8_192 }])
})

it("a key frame of VP8 has a size", () => {
  const frame = Buffer.from([0x10, 0, 0, 0x9d, 1, 0x2a, 0x40, 0x40 | 0x1f, 0x10, 0x27])
  expect(codedSizes("vp8")!.of(frame)).toEqual([{ width: 0x1f40, height: 0x2710 }])
})

it("sets of parameters are found behind lengths and behind start codes", async () => {
  const { of } = codedSizes("avc")!
  const file = clip("large.mp4")
  const record = file.subarray(file.indexOf("avcC") + 4)
  const set = record.subarray(8, 8 + record.readUInt16BE(6))
  const length = Buffer.from([0, 0, 0, set.length])
  const size = { width: 2_576, height: 1_616 }
  expect(of(Buffer.concat([length, set]))).toEqual([size])
  expect(of(Buffer.concat([Buffer.from([0, 0, 1, 9, 0, 0, 1]), set]))).toEqual([size])
})

it("bytes that are no packet are read to their end", () => {
  const noise = Buffer.from(Array.from({ length: 5_000 }, (_, i) => (i * 7_919) % 256))
  for (const codec of ["vp8", "vp9", "av1", "avc", "hevc"])
    for (const at of [0, 1, 2, 3, 997, 4_999, 5_000]) {
      const read = codedSizes(codec, noise.subarray(at))!
      expect(Array.isArray([...read.first, ...read.of(noise.subarray(at))])).toBe(true)
    }
  expect(codedSizes("prores")).toBeUndefined()
})

it("a video whose header says less is refused before it is decoded", async () => {
  const bytes = Buffer.from(clip("large.mp4"))
  const entry = bytes.indexOf("avc1", bytes.indexOf("stsd")) + 4
  expect([bytes.readUInt16BE(entry + 24), bytes.readUInt16BE(entry + 26)]).toEqual([2_576, 1_616])
  bytes.writeUInt16BE(64, entry + 24)
  bytes.writeUInt16BE(64, entry + 26)
  const decode = vi.spyOn(VideoDecoder.prototype, "decode")
  const input = { perSecond: 1, most: 16, maxSeconds: 600 }
  const made = await decodeVideo({ bytes, ...input })
  expect(made).toEqual({
    refused: "has 2576 x 1616 pixels; at most 4,096,000 are taken",
  })
  expect(decode).not.toHaveBeenCalled()
  await decodeVideo({ bytes: clip("colours.mp4"), ...input })
  expect(decode).toHaveBeenCalled()
})
