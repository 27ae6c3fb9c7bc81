import type { Json } from "../../../core/json.ts"
import type { ControlGuard } from "./control-guard.ts"

/** The images of a prompt. */
export interface PromptImages {
  /** What templates call a block of it; `image` by default. */
  readonly kind?: "image" | "audio"
  /** Stands for an image in the contents of messages, and nowhere else. */
  readonly mark: string
  /**
   * The control token that the template writes for an image; undefined: the files of the tower say
   * none.
   */
  readonly token?: number | undefined
  /**
   * What stands there instead, in the order of the marks: texts with control tokens, and ids below
   * 0 for what the decoder reads of the image.
   */
  readonly parts: readonly (readonly (string | Int32Array)[])[]
}

/**
 * The token that a template writes for an image. Undefined: it knows no images, so they stand in the
 * texts themselves, where the blocks of the message are.
 */
export const imageTokenOf = (
  images: PromptImages | undefined,
  controlTokens: Readonly<Record<string, number>>,
  takesParts: boolean,
): number | undefined => images?.token ?? (takesParts ? controlTokens["<image>"] : undefined)

/** The parts of a content; the last text of a message is as it was written, to its end. */
export const partsOf = (
  guard: ControlGuard,
  text: string,
  mark: string | undefined,
  kind: NonNullable<PromptImages["kind"]> = "image",
): Json => {
  const texts = mark === undefined ? [text] : text.split(mark)
  return texts.flatMap((piece, index) => {
    const isLast = index === texts.length - 1
    const written = piece === "" && texts.length > 1 ? [] : [isLast ? piece : guard.seal(piece)]
    return [
      ...written.map((part) => ({ type: "text", text: part })),
      ...(isLast ? [] : [{ type: kind }]),
    ]
  })
}

/** What stands for an image, as pieces of a prompt. */
const piecesOf = (
  guard: ControlGuard,
  parts: PromptImages["parts"][number],
): readonly (number | string)[] =>
  parts.flatMap((part) => (typeof part === "string" ? guard.parse(part) : [...part]))

/** Puts the images where the template has them; undefined where it has not one place for each. */
export const withImages = (
  guard: ControlGuard,
  pieces: readonly (number | string)[],
  images: PromptImages | undefined,
  token: number | undefined,
): readonly (number | string)[] | undefined => {
  if (!images) return pieces
  const { mark, parts } = images
  let shown = 0
  const next = () => piecesOf(guard, parts[shown++] ?? [])
  const all = pieces.flatMap((piece) => {
    if (token !== undefined) return piece === token ? next() : [piece]
    if (typeof piece === "number") return [piece]
    const between = piece.split(mark)
    return between.flatMap((text, index) => [
      ...(text === "" ? [] : [text]),
      ...(index === between.length - 1 ? [] : next()),
    ])
  })
  return shown === parts.length ? all : undefined
}
