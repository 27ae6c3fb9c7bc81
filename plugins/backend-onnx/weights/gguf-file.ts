import { BytesMissing } from "./byte-cursor.ts"
import { type GgufHeader, parseGgufHeader } from "./gguf-header.ts"
import { Damaged } from "./model-file-error.ts"
import { type ReadAt, TensorFile, type TensorSource } from "./tensor-file.ts"

const firstReadBytes = 4 * 2 ** 20
// several times what the largest vocabularies take
const maxHeaderBytes = 64 * 2 ** 20

export interface GgufFile extends TensorSource {
  readonly header: GgufHeader
}

const readHeader = (read: ReadAt, fileBytes: number): GgufHeader => {
  let length = Math.min(fileBytes, firstReadBytes)
  for (;;) {
    try {
      return parseGgufHeader(read(0, length), fileBytes)
    } catch (cause) {
      if (!(cause instanceof BytesMissing)) throw cause
      if (cause.needed > fileBytes)
        throw new Damaged(
          `it is cut: the header needs ${cause.needed} bytes, the file has ${fileBytes}`,
        )
      if (cause.needed > maxHeaderBytes)
        throw new Damaged(`the header is larger than ${maxHeaderBytes} bytes`)
      length = Math.min(fileBytes, Math.max(length * 4, cause.needed))
    }
  }
}

export const openGguf = (path: string): TensorFile<GgufHeader> => TensorFile.open(path, readHeader)
