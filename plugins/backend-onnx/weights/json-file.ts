import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Metadata } from "./gguf-metadata.ts"
import { Damaged, explaining } from "./model-file-error.ts"

const mebibyte = 2 ** 20

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Damaged(`it is not JSON (${(cause as Error).message})`)
  }
}

/** Reads a text file of a model's folder. Throws `ModelFileError`. */
export const readTextFile = (folder: string, name: string, maxBytes = 16 * mebibyte): string => {
  const path = join(folder, name)
  return explaining(path, () => {
    try {
      const { size } = statSync(path)
      if (size > maxBytes) throw new Damaged(`it has ${size} bytes, the most is ${maxBytes}`)
      return readFileSync(path, "utf8")
    } catch (cause) {
      if (cause instanceof Damaged) throw cause
      throw new Damaged(
        (cause as NodeJS.ErrnoException).code === "ENOENT"
          ? "it is missing"
          : `it can't be read (${(cause as Error).message})`,
      )
    }
  })
}

/** Reads a JSON object as metadata. Throws `ModelFileError`. */
export const readJson = (folder: string, name: string, maxBytes?: number): Metadata => {
  const text = readTextFile(folder, name, maxBytes)
  return explaining(join(folder, name), () => {
    const json = parsed(text)
    if (typeof json !== "object" || json === null || Array.isArray(json))
      throw new Damaged("it is not an object")
    return new Map(Object.entries(json))
  })
}
