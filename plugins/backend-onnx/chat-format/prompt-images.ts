import type { Json } from "../../../core/json.ts"
import type { ControlGuard } from "./control-guard.ts"

/** The images of a prompt. */
export interface PromptImages {
  /** Stands for an image in the contents of messages, and nowhere else. */
  readonly mark: string
  /** The control token that the template writes for an image. */
  readonly token: number
  /**
   * What stands there instead, in the order of the marks: texts with control tokens, and ids below
   * 0 for what the decoder reads of the image.
   */
  readonly parts: readonly (readonly (string | Int32Array)[])[]
}

/** The parts of a content; the last text of a message is as it was written, to its end. */
export const partsOf = (guard: ControlGuard, text: string, mark: string | undefined): Json => {
  const texts = mark === undefined ? [text] : text.split(mark)
  return texts.flatMap((piece, index) => {
    const isLast = index === texts.length - 1
    const written = piece === "" && texts.length > 1 ? [] : [isLast ? piece : guard.seal(piece)]
    return [
      ...written.map((part) => ({ type: "text", text: part })),
      ...(isLast ? [] : [{ type: "image" }]),
    ]
  })
}

/** Puts the images where the template has them; undefined where it has not one place for each. */
export const withImages = (
  guard: ControlGuard,
  pieces: readonly (number | string)[],
  images: PromptImages | undefined,
): readonly (number | string)[] | undefined => {
  if (!images) return pieces
  let shown = 0
  const all = pieces.flatMap((piece) =>
    piece === images.token
      ? (images.parts[shown++] ?? []).flatMap((part) =>
          typeof part === "string" ? guard.parse(part) : [...part],
        )
      : [piece],
  )
  return shown === images.parts.length ? all : undefined
}
