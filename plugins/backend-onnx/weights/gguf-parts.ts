import { existsSync, readdirSync, realpathSync, statSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { type GgufFile, openGguf } from "./gguf-file.ts"
import type { GgufHeader } from "./gguf-header.ts"
import { type Metadata, numberOr } from "./gguf-metadata.ts"
import { Damaged, explaining, ModelFileError, Unsupported } from "./model-file-error.ts"
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

const joining = "join them with llama.cpp's `llama-gguf-split --merge`"

/** The number of parts, by the metadata of one of them; a merged file may say 0. */
const countOf = (metadata: Metadata): number => {
  const count = numberOr(metadata, "split.count", 1)
  if (!Number.isInteger(count) || count < 0)
    throw new Damaged(`its 'split.count' is ${count}, which is no number of parts`)
  if (count > maxParts)
    throw new Unsupported(
      `it is in ${count} parts, the most is ${maxParts}`,
      `Name one file: ${joining}`,
    )
  return Math.max(1, count)
}

/** Returns the paths of all parts, by the name of one of them. Throws `Damaged`. */
const partsBeside = ({ path, header: { metadata } }: GgufFile): readonly string[] => {
  const count = countOf(metadata)
  if (count === 1) return [path]
  const part = numberOr(metadata, "split.no", 0) + 1
  if (!Number.isInteger(part) || part < 1 || part > count)
    throw new Damaged(`its 'split.no' is ${part - 1}, with ${count} parts`)
  const own = `it is part ${part} of ${count}`
  const end = endOf(part, count)
  if (!path.endsWith(end))
    throw new Damaged(
      `${own}, but its name does not end in ${end}`,
      "Give the parts the names that they were published with",
    )
  const stem = path.slice(0, -end.length)
  const paths = Array.from({ length: count }, (_, at) => stem + endOf(at + 1, count))
  const missing = paths.find((one) => !existsSync(one))
  if (missing !== undefined)
    throw new Damaged(
      `${own}, and ${basename(missing)} is not beside it`,
      `Put all parts into one folder, or ${joining}`,
    )
  if (part !== 1) throw new Damaged(own, `Name the first part, ${basename(paths[0]!)}`)
  return paths
}

/** Throws `Damaged` for a file that is not the part that its name says. */
const checkPart = ({ header: { metadata } }: GgufFile, part: number, count: number): void => {
  if (metadata.get("split.no") !== part - 1 || metadata.get("split.count") !== count)
    throw new Damaged(`it is not part ${part} of ${count}, as its name says`)
}

const refuseMissing = ({ header: { metadata, tensors } }: GgufModel): void => {
  const wanted = numberOr(metadata, "split.tensors.count", tensors.size)
  if (tensors.size !== wanted)
    throw new Damaged(`its parts have ${tensors.size} tensors, not the ${wanted} that it names`)
}

/**
 * Opens a GGUF file; where it is the first of several parts, these, too, which must be beside it.
 * Throws `ModelFileError`.
 */
export const openGgufModel = (path: string): GgufModel => {
  const first = openGguf(path)
  const parts: [GgufFile, ...GgufFile[]] = [first]
  try {
    return explaining(path, () => {
      const paths = partsBeside(first)
      for (const [at, other] of paths.slice(1).entries()) {
        const part = openGguf(other)
        parts.push(part)
        explaining(other, () => checkPart(part, at + 2, paths.length))
      }
      const model = new GgufModel(parts)
      if (parts.length > 1) refuseMissing(model)
      return model
    })
  } catch (cause) {
    for (const part of parts) part.close()
    throw cause
  }
}

/** Throws `Unsupported` for a part of a file, where all of it must be in one. */
export const refuseParts = (metadata: Metadata): void => {
  const count = countOf(metadata)
  if (count > 1) throw new Unsupported(`it is one of ${count} parts`, `Name one file: ${joining}`)
}

const partEnd = /-\d{5}(-of-\d{5}\.gguf)$/

/** Names of the GGUF files of models in a folder, but for parts whose first one is there. */
const modelsIn = (folder: string): readonly string[] => {
  const isModel = (name: string) =>
    /^(?!\.|mmproj).*\.gguf$/i.test(name) &&
    statSync(join(folder, name), { throwIfNoEntry: false })?.isFile() === true
  const names = readdirSync(folder).filter(isModel).sort()
  const isLater = (name: string) => {
    const first = name.replace(partEnd, "-00001$1")
    return first !== name && names.includes(first)
  }
  return names.filter((name) => !isLater(name))
}

/**
 * Returns the GGUF file that a path stands for: itself, or the only one of a folder (of parts the
 * first); undefined for a folder without one. Throws `ModelFileError` for a folder with several.
 */
export const ggufAt = (path: string): string | undefined => {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path
  const names = modelsIn(path)
  if (names.length > 1)
    throw new ModelFileError(
      path,
      `it has ${names.length} GGUF files: ${names.slice(0, 5).join(", ")}${names.length > 5 ? ", ..." : ""}`,
      "Name one of them",
    )
  return names[0] && join(path, names[0])
}

/**
 * Returns the path without links, but for the name of a part, by which the others are found.
 * Throws where there is nothing.
 */
export const realModelPath = (path: string): string =>
  partEnd.test(path) ? join(realpathSync(dirname(path)), basename(path)) : realpathSync(path)
