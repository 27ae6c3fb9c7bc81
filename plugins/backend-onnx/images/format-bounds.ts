/*
 * What small files may ask of libvips beyond their pixels, and what its own limits let pass: it
 * computes every scan of a JPEG before the first row, and looks for each frame of a WebP from the
 * first on.
 */

const startOfScan = 0xda
const endOfImage = 0xd9
/** Markers without a segment behind them: stuffed bytes, TEM, RST0 to RST7, SOI. */
const standsAlone = (marker: number) =>
  marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8) || marker === 0xff

/** Counts the scans of a JPEG (ITU-T T.81, annex B) up to its end; a progressive one has about 10. */
export const jpegScans = (bytes: Buffer): number => {
  let scans = 0
  let at = 2
  while (at + 4 <= bytes.length) {
    const marker = bytes[at + 1]!
    if (bytes[at] !== 0xff || marker === 0xff) at++
    else if (marker === endOfImage) break
    else if (standsAlone(marker)) at += 2
    else {
      if (marker === startOfScan) scans++
      at += 2 + bytes.readUInt16BE(at + 2)
    }
  }
  return scans
}

const riffHeader = 12
const chunkHeader = 8

/** Returns a WebP (RIFF chunks) up to the end of its first frame, if it is an animation. */
export const firstFrameOf = (bytes: Buffer): Buffer => {
  let at = riffHeader
  while (at + chunkHeader <= bytes.length) {
    const size = bytes.readUInt32LE(at + 4)
    const end = at + chunkHeader + size + (size % 2)
    if (bytes.toString("latin1", at, at + 4) === "ANMF") {
      if (end >= bytes.length) break
      const first = Buffer.from(bytes.subarray(0, end))
      first.writeUInt32LE(end - chunkHeader, 4)
      return first
    }
    at = end
  }
  return bytes
}
