import { existsSync, readdirSync, statSync } from "node:fs"
import { basename, join } from "node:path"
import { type GgufFile, openGguf } from "./gguf-file.ts"
import type { GgufHeader } from "./gguf-header.ts"
import { numberOr } from "./gguf-metadata.ts"
import { Damaged, explaining, ModelFileError } from "./model-file-error.ts"
import { ShardedTensors } from "./sharded-tensors.ts"

/** A GGUF file, or all parts of one that `llama-gguf-split` of llama.cpp has split. */
export class GgufModel extends ShardedTensors implements GgufFile {
  readonly files: readonly string[]
  /** Metadata of the first part, tensors of all. */
  readonly header: GgufHeader

  constructor(parts: readonly [GgufFile, ...GgufFile[]]) {
    const [{ path, header }] = parts
    super(path, parts)
    this.files = parts.map((part) => part.path)
    const tensors = new Map(parts.flatMap((part) => [...part.header.tensors]))
    this.header = { metadata: header.metadata, tensors }
  }
}

const maxParts = 1_000

const endOf = (part: number, count: number): string =>
  `-${[part, count].map((number) => String(number).padStart(5, "0")).join("-of-")}.gguf`

/** Returns the paths of all parts, by the name of the first one. Throws `Damaged`. */
const partsBeside = ({ path, header: { metadata } }: GgufFile): readonly string[] => {
  const count = numberOr(metadata, "split.count", 1)
  if (count <= 1) return [path]
  const part = numberOr(metadata, "split.no", 0) + 1
  const own = `it is part ${part} of ${count}`
  if (count > maxParts) throw new Damaged(`${own}, the most is ${maxParts}`)
  const end = endOf(part, count)
  if (!path.endsWith(end))
    throw new Damaged(
      `${own}, but its name does not end in ${end}`,
      "Give the parts the names that they were published with",
    )
  const paths = Array.from(
    { length: count },
    (_, at) => path.slice(0, -end.length) + endOf(at + 1, count),
  )
  if (part !== 1) throw new Damaged(own, `Name the first part, ${basename(paths[0]!)}`)
  const missing = paths.find((one) => !existsSync(one))
  if (missing !== undefined)
    throw new Damaged(
      `${own}, and ${basename(missing)} is not beside it`,
      "Put all parts into one folder, or join them with llama.cpp's `llama-gguf-split --merge`",
    )
  return paths
}

const openPart = (path: string, part: number, count: number): GgufFile => {
  const file = openGguf(path)
  const { metadata } = file.header
  if (metadata.get("split.no") === part - 1 && metadata.get("split.count") === count) return file
  file.close()
  throw new ModelFileError(path, `it is not part ${part} of ${count}, as its name says`)
}

const refuseMissing = ({ path, header: { metadata, tensors } }: GgufModel): void => {
  const wanted = numberOr(metadata, "split.tensors.count", tensors.size)
  if (tensors.size !== wanted)
    throw new ModelFileError(
      path,
      `its parts have ${tensors.size} tensors, not the ${wanted} that it names`,
    )
}

/**
 * Opens a GGUF file; where it is the first of several parts, these, too, which must be beside it.
 * Throws `ModelFileError`.
 */
export const openGgufModel = (path: string): GgufModel => {
  const parts: [GgufFile, ...GgufFile[]] = [openGguf(path)]
  try {
    const [first] = parts
    const paths = explaining(path, () => partsBeside(first))
    for (let at = 1; at < paths.length; at++) parts.push(openPart(paths[at]!, at + 1, paths.length))
    const model = new GgufModel(parts)
    refuseMissing(model)
    return model
  } catch (cause) {
    for (const part of parts) part.close()
    throw cause
  }
}

const isLaterPart = (name: string): boolean =>
  /-\d{5}-of-\d{5}\.gguf$/.test(name) && !/-00001-of-\d{5}\.gguf$/.test(name)

/**
 * Returns the GGUF file that a path stands for: itself, or the only one of a folder (of parts the first);
 * undefined for a folder without one. Throws `ModelFileError` for a folder with several.
 */
export const ggufAt = (path: string): string | undefined => {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path
  const names = readdirSync(path)
    .filter((name) => name.endsWith(".gguf") && !isLaterPart(name))
    .sort()
  if (names.length > 1)
    throw new ModelFileError(
      path,
      `it has ${names.length} GGUF files: ${names.slice(0, 5).join(", ")}`,
      "Name one of them",
    )
  return names[0] && join(path, names[0])
}
