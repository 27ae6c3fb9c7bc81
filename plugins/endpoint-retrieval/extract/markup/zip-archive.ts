import { buffer } from "node:stream/consumers"
import { type Entry, fromBuffer, type ZipFile } from "yauzl"
import type { Bytes } from "../extract-parts.ts"
import { ReadFailure } from "../read-failure.ts"

const maxEntries = 20_000
/** Unpacked. What is larger holds no text that a person wrote. */
const maxEntryBytes = 2 ** 30

const damaged = () => new ReadFailure("broken", "The file is damaged: it is no whole archive.")
const encrypted = () =>
  new ReadFailure(
    "encrypted",
    "The file is encrypted. Remove the password, then upload the file again.",
  )

const open = (data: Buffer): Promise<ZipFile> =>
  new Promise((resolve, reject) => {
    fromBuffer(data, { lazyEntries: true }, (error, zip) =>
      error ? reject(damaged()) : resolve(zip),
    )
  })

const entriesOf = (zip: ZipFile): Promise<ReadonlyMap<string, Entry>> =>
  new Promise((resolve, reject) => {
    const entries = new Map<string, Entry>()
    zip.on("error", () => reject(damaged()))
    zip.on("end", () => resolve(entries))
    zip.on("entry", (entry: Entry) => {
      entries.set(entry.fileName, entry)
      if (entries.size > maxEntries)
        reject(new ReadFailure("too_large", `The file packs more than ${maxEntries} others.`))
      else zip.readEntry()
    })
    zip.readEntry()
  })

export interface ZipArchive {
  /** The bytes of a file in the archive as they are unpacked, or undefined if it has none such. */
  readonly read: (name: string) => Bytes | undefined
  /** The whole of a small one. */
  readonly readSmall: (name: string, maxBytes: number) => Promise<Buffer | undefined>
}

/** Opens an archive that lies in memory. Fails with a `ReadFailure`. */
export const openZip = async (data: Buffer): Promise<ZipArchive> => {
  const zip = await open(data)
  const entries = await entriesOf(zip)
  const streamOf = (entry: Entry): Promise<NodeJS.ReadableStream> =>
    new Promise((resolve, reject) => {
      if (entry.isEncrypted()) return reject(encrypted())
      zip.openReadStream(entry, (error, stream) => (error ? reject(damaged()) : resolve(stream)))
    })
  async function* unpack(entry: Entry): AsyncGenerator<Uint8Array> {
    if (entry.uncompressedSize > maxEntryBytes)
      throw new ReadFailure("too_large", "The file unpacks to more than 1 GB.")
    const stream = await streamOf(entry)
    try {
      for await (const chunk of stream) yield chunk as Buffer
    } catch {
      throw damaged()
    }
  }
  const read: ZipArchive["read"] = (name) => {
    const entry = entries.get(name)
    return entry && unpack(entry)
  }
  const readSmall: ZipArchive["readSmall"] = async (name, maxBytes) => {
    const entry = entries.get(name)
    return entry && entry.uncompressedSize <= maxBytes ? buffer(unpack(entry)) : undefined
  }
  return { read, readSmall }
}
