import type { Effect } from "effect"
import type { PortError } from "../errors.ts"

export type ImageSetting = "steps" | "seed" | "guidanceScale" | "strength"

/** `step` comes after each step, from 1 on; `image` once, last. Bytes are PNG files. */
export type ImageEvent =
  | {
      readonly type: "step"
      readonly step: number
      readonly steps: number
      readonly preview?: Uint8Array
    }
  | {
      readonly type: "image"
      readonly mediaType: "image/png"
      readonly bytes: Uint8Array
      /** What of the request's `unsaid` did not make the picture. */
      readonly ignored?: readonly ImageSetting[]
    }

/**
 * Decides what the image endpoints refuse: `content_policy_violation`, not charged. A failure of it
 * refuses the request, too, as an error of the server. Prompts and pictures are never logged.
 */
export interface ImageSafety {
  /** Returns the category that a prompt belongs to (`minors`), or undefined: it is harmless. */
  prompt(text: string): Effect.Effect<string | undefined, PortError>
  /** The same for a picture that was made, a PNG file. */
  picture(bytes: Uint8Array): Effect.Effect<string | undefined, PortError>
}

/** What a part of a message or of an input has that is not text. */
export interface Media {
  readonly type: "media"
  readonly mediaType: string
  readonly bytes: Uint8Array
  /** How closely an image is looked at, where a model can choose; absent: as it does. */
  readonly detail?: "low" | "high"
}
