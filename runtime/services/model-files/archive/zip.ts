import type { Readable } from "node:stream"
import { crc32 } from "node:zlib"
import { type Entry, openPromise, type ZipFile } from "yauzl"
import { DamagedContent } from "../failure.ts"
import type { UnpackSink } from "./sink.ts"

const fileTypeMask = 0o170000
const regularFile = 0o100000

/** The upper 16 bits are the Unix mode, if the packer wrote it. */
const isSpecial = (entry: Entry): boolean => {
  const type = (entry.externalFileAttributes >>> 16) & fileTypeMask
  return type !== 0 && type !== regularFile
}

const checked = async function* (
  stream: Readable,
  entry: Entry,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let sum = 0
  for await (const chunk of stream) {
    signal.throwIfAborted()
    sum = crc32(chunk, sum)
    yield chunk
  }
  if (sum >>> 0 !== entry.crc32 >>> 0)
    throw new DamagedContent(`${entry.fileName} has a wrong checksum in the archive`)
}

const unpackEntry = async (
  zip: ZipFile,
  entry: Entry,
  sink: UnpackSink,
  signal: AbortSignal,
): Promise<void> => {
  if (entry.fileName.endsWith("/")) return
  if (isSpecial(entry))
    throw new DamagedContent(
      `the archive holds a link or device: ${JSON.stringify(entry.fileName)}`,
    )
  if (entry.isEncrypted()) throw new DamagedContent("the archive is encrypted")
  sink.check(entry.fileName, entry.uncompressedSize)
  const stream = await zip.openReadStreamPromise(entry)
  // yauzl only emits errors of the inflater: without a destroy, a later reader would wait for ever
  stream.on("error", (error) => stream.destroy(error))
  try {
    await sink.write(entry.fileName, checked(stream, entry, signal))
  } finally {
    stream.destroy()
  }
}

export const unpackZip = async (
  archive: string,
  sink: UnpackSink,
  signal: AbortSignal,
): Promise<void> => {
  const zip = await openPromise(archive, {
    lazyEntries: true,
    autoClose: false,
    strictFileNames: true,
    validateEntrySizes: true,
  })
  try {
    for await (const entry of zip.eachEntry()) {
      signal.throwIfAborted()
      await unpackEntry(zip, entry, sink, signal)
    }
  } finally {
    zip.close()
  }
}
