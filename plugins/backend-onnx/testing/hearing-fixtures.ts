import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fixtureFolder } from "./fixtures.ts"

const rate = 16_000

/** Folder of a tiny Whisper, see fixtures/make-hearing.py. */
export const hearingFolder = (name: string): string => join(fixtureFolder("hearing"), name)

/** How a sound is transcribed by transformers. */
export interface HearingCase {
  readonly seconds: number
  readonly language?: string
  readonly times: boolean
  readonly prompt?: string
  readonly tokens: readonly number[]
  readonly segments: readonly {
    readonly start: number
    readonly end: number
    readonly tokens: readonly number[]
  }[]
}

export const heardBy = (name: string) =>
  JSON.parse(readFileSync(join(hearingFolder(name), "expected.json"), "utf8")) as {
    readonly seconds: number
    readonly ids: readonly number[]
    readonly features: readonly (readonly number[])[]
    readonly logits: readonly (readonly number[])[]
    readonly cases: readonly HearingCase[]
  }

/** The sound of the fixtures: two rising tones with pauses. */
export const sound = (seconds: number): Float32Array =>
  Float32Array.from({ length: Math.trunc(seconds * rate) }, (_, i) => {
    const t = i / rate
    const isLoud = Math.floor(t * 1.7) % 3 !== 0
    const tones =
      0.4 * Math.sin(2 * Math.PI * (200 + 30 * t) * t) + 0.2 * Math.sin(2 * Math.PI * 1234.5 * t)
    return isLoud ? tones : 0
  })

/** What transformers makes of sounds and chats, see fixtures/make-listening.py. */
export const listenedBy = () =>
  JSON.parse(readFileSync(join(hearingFolder("qwen2-audio"), "expected.json"), "utf8")) as {
    readonly audioToken: number
    readonly sounds: readonly {
      readonly seconds: number
      readonly count: number
      readonly first: readonly number[]
      readonly last: readonly number[]
    }[]
    readonly chats: readonly {
      readonly messages: readonly {
        readonly role: "user"
        readonly content: readonly { readonly type: "text" | "audio"; readonly text?: string }[]
      }[]
      /** How long the sounds are, in their order. */
      readonly seconds: readonly number[]
      readonly ids: readonly number[]
      readonly greedy: readonly number[]
    }[]
  }
