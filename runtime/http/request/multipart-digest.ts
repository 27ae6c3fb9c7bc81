import { createHash } from "node:crypto"
import { Effect, Stream } from "effect"
import type { BodyPart, MultipartBody } from "../../../core/ports/endpoint.ts"

export interface DigestedForm {
  readonly body: MultipartBody
  /**
   * SHA-256 in base64, independent of the boundary and of the order of the parts; undefined before
   * all of it was read.
   */
  digest(): string | undefined
}

type FilePart = Extract<BodyPart, { readonly kind: "file" }>

/** Hashes a form while it is read. */
export const digestForm = ({ parts, contentLength }: MultipartBody): DigestedForm => {
  const digests: string[] = []
  let found = 0
  let isWhole = false
  const hashOf = (...head: readonly string[]) => createHash("sha256").update(JSON.stringify(head))
  const file = (part: FilePart): FilePart => {
    const hash = hashOf("file", part.name, part.filename, part.mediaType)
    const passing = Stream.tap(part.bytes, (chunk) => Effect.sync(() => hash.update(chunk)))
    return {
      ...part,
      bytes: Stream.concat(
        passing,
        Stream.fromEffectDrain(Effect.sync(() => void digests.push(hash.digest("hex")))),
      ),
    }
  }
  const pass = (part: BodyPart): BodyPart => {
    found++
    if (part.kind === "file") return file(part)
    digests.push(hashOf("field", part.name, part.value).digest("hex"))
    return part
  }
  const ended = Effect.sync(() => {
    isWhole = true
  })
  return {
    body: {
      parts: Stream.concat(Stream.map(parts, pass), Stream.fromEffectDrain(ended)),
      contentLength,
    },
    digest: () =>
      isWhole && digests.length === found
        ? createHash("sha256").update(digests.sort().join()).digest("base64")
        : undefined,
  }
}

/** Reads a form for its digest alone. */
export const readThrough = ({ parts }: MultipartBody) =>
  Stream.runForEach(parts, (part) =>
    part.kind === "file" ? Stream.runDrain(part.bytes) : Effect.void,
  )
