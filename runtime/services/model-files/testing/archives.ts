import { crc32, deflateRawSync, gzipSync } from "node:zlib"
import { Header } from "tar"

export interface ZipEntry {
  readonly name: string
  readonly data: Buffer
  /** Unix mode with the file type; a regular file by default. */
  readonly mode?: number
  /** Written into the directory instead of the right one. */
  readonly crc?: number
}

const zipFields = (entry: ZipEntry, packed: Buffer): Buffer => {
  const fields = Buffer.alloc(26)
  fields.writeUInt16LE(20, 0)
  fields.writeUInt16LE(0x0800, 2) // names are UTF-8
  fields.writeUInt16LE(8, 4)
  fields.writeUInt32LE(entry.crc ?? crc32(entry.data), 10)
  fields.writeUInt32LE(packed.length, 14)
  fields.writeUInt32LE(entry.data.length, 18)
  fields.writeUInt16LE(Buffer.byteLength(entry.name), 22)
  return fields
}

/** A deflated zip. Names and modes are written as given, so it may be hostile. */
export const makeZip = (entries: readonly ZipEntry[]): Buffer => {
  const locals: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const entry of entries) {
    const packed = deflateRawSync(entry.data)
    const name = Buffer.from(entry.name)
    const fields = zipFields(entry, packed)
    const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), fields, name, packed])
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE(((entry.mode ?? 0o100644) << 16) >>> 0, 6)
    rest.writeUInt32LE(offset, 10)
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x03", "latin1"), fields, rest, name]))
    locals.push(local)
    offset += local.length
  }
  const central = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write("PK\x05\x06", "latin1")
  end.writeUInt16LE(entries.length, 8)
  end.writeUInt16LE(entries.length, 10)
  end.writeUInt32LE(central.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...locals, central, end])
}

export interface TarEntry {
  readonly path: string
  readonly data?: Buffer
  readonly type?: "File" | "SymbolicLink" | "Link" | "Directory"
  readonly linkpath?: string
}

/** A gzipped tar. Names and links are written as given, so it may be hostile. */
export const makeTgz = (entries: readonly TarEntry[]): Buffer => {
  const blocks = entries.flatMap(({ path, data = Buffer.alloc(0), type = "File", linkpath }) => {
    const header = new Header({
      path,
      size: data.length,
      type,
      mode: 0o644,
      mtime: new Date(0),
      ...(linkpath !== undefined && { linkpath }),
    })
    header.encode()
    return [
      header.block ?? Buffer.alloc(512),
      data,
      Buffer.alloc((512 - (data.length % 512)) % 512),
    ]
  })
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]))
}
