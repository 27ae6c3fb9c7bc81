/** Kilobits a second by the index in a frame's header, of MPEG-1 and of MPEG-2 and 2.5. */
const kilobits = {
  1: {
    1: [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    2: [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    3: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  },
  2: {
    1: [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    2: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    3: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  },
} as const
const rates = [44_100, 48_000, 32_000]

/** What is counted and nothing else: decoders find sound also within what looks like a tag. */
export interface Sound {
  readonly audio: Uint8Array
  readonly seconds: number
}

interface Frame {
  readonly bytes: number
  readonly seconds: number
}

/** A frame by the four bytes of its header; undefined where they are none. */
const frameAt = (file: Uint8Array, at: number): Frame | undefined => {
  const [first, second, third] = [file[at], file[at + 1], file[at + 2]]
  if (first !== 0xff || second === undefined || third === undefined) return undefined
  const version = (second >> 3) & 3 // 0: 2.5, 2: 2, 3: 1
  const layer = 4 - ((second >> 1) & 3)
  if ((second & 0xe0) !== 0xe0 || version === 1 || layer === 4) return undefined
  const isFirst = version === 3
  const table = kilobits[isFirst ? 1 : 2][layer as 1 | 2 | 3]
  const rate = (rates[(third >> 2) & 3] ?? 0) / (isFirst ? 1 : version === 2 ? 2 : 4)
  const bits = (table[third >> 4] ?? 0) * 1000
  if (bits === 0 || rate === 0) return undefined
  const padding = (third >> 1) & 1
  const samples = layer === 1 ? 384 : layer === 3 && !isFirst ? 576 : 1152
  const bytes =
    layer === 1
      ? (Math.floor((12 * bits) / rate) + padding) * 4
      : Math.floor(((samples / 8) * bits) / rate) + padding
  return { bytes, seconds: samples / rate }
}

const mostTags = 16

/** Where the sound begins: behind tags at the start. */
const behindTags = (file: Uint8Array): number => {
  let at = 0
  for (let tags = 0; tags < mostTags; tags++) {
    if (Buffer.from(file.subarray(at, at + 3)).toString("latin1") !== "ID3") break
    const [a = 0, b = 0, c = 0, d = 0] = file.subarray(at + 6, at + 10)
    const footer = (file[at + 5] ?? 0) & 0x10 ? 10 : 0
    at += 10 + footer + ((a & 127) << 21) + ((b & 127) << 14) + ((c & 127) << 7) + (d & 127)
  }
  return at
}

const mostPadding = 2 ** 20

/** The size of ID3v1, behind its extension. */
const mostId3v1 = 227 + 128

/** Tags and padding may follow the sound. */
const isTail = (rest: Uint8Array): boolean => {
  const head = Buffer.from(rest.subarray(0, 11)).toString("latin1")
  if (head.startsWith("TAG")) return rest.length <= mostId3v1
  return (
    /^(APETAGEX|LYRICSBEGIN)/.test(head) ||
    (rest.length <= mostPadding && rest.every((byte) => byte === 0))
  )
}

export const isMp3 = (file: Uint8Array): boolean =>
  Buffer.from(file.subarray(0, 3)).toString("latin1") === "ID3" || frameAt(file, 0) !== undefined

/**
 * Returns the sound of an MP3 file, with its seconds by the headers of its frames, or what is wrong
 * with it.
 */
export const mp3Sound = (file: Uint8Array): Sound | string => {
  const start = behindTags(file)
  let at = start
  if (at > file.length) return "is cut off within its tags"
  let seconds = 0
  while (at < file.length) {
    const frame = frameAt(file, at)
    if (!frame) {
      if (isTail(file.subarray(at))) break
      return `is damaged: there is no sound at byte ${at}`
    }
    if (at + frame.bytes > file.length) return "is cut off: its last frame is not whole"
    seconds += frame.seconds
    at += frame.bytes
  }
  return { audio: file.subarray(start, at), seconds }
}
