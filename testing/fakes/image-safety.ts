import { Effect } from "effect"
import { PortError } from "../../core/errors.ts"
import type { ImageSafety } from "../../core/ports/image.ts"

export interface FakeRefusals {
  /** A prompt that has this word is of the category `words`. */
  readonly word?: string
  /** This picture is of the category `pictures`. */
  readonly picture?: Uint8Array
}

const signature = Buffer.from("\u0089PNG\r\n\u001a\n", "latin1")

/** Refuses one word and one picture; fails for what is no PNG file. */
export const fakeImageSafety = ({ word, picture }: FakeRefusals = {}): ImageSafety => ({
  prompt: (text) =>
    Effect.sync(() => (word !== undefined && text.includes(word) ? "words" : undefined)),
  picture: (bytes) =>
    signature.equals(bytes.subarray(0, signature.length))
      ? Effect.sync(() => (picture && Buffer.from(picture).equals(bytes) ? "pictures" : undefined))
      : Effect.fail(new PortError({ port: "imageSafety", message: "no PNG file" })),
})
