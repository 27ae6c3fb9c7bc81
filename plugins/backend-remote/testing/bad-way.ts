import { chunk, event, type Script, say, usageOf } from "./scripted-upstream.ts"

/** What a client sees of a chat that an upstream served badly, and what it pays for. */
export interface Expected {
  /** The text that came. */
  readonly text?: string
  readonly finish?: string
  /** The error code; before the first event, or in the middle of the stream. */
  readonly error?: string
  /** Input and output tokens that are charged; nothing where it failed. */
  readonly charged?: readonly [input: number, output: number]
  /** How often the upstream was asked. */
  readonly asked?: number
}

/** One way in which a chat server misbehaves. */
export interface BadWay {
  readonly name: string
  /** It ends by a timeout. */
  readonly isSlow?: true
  readonly scripts: readonly Script[]
  readonly sees: Expected
}

export const end = chunk({}, "stop")
export const hello = [say("Hel"), say("lo")] as const
export const usage = usageOf(5, 2)
export const whole = [...hello, end, usage, "[DONE]"].map(event).join("")
export const well: Expected = { text: "Hello", finish: "stop", charged: [5, 2], asked: 1 }
export const failed: Expected = { error: "backend_error", charged: [0, 0] }
export const midway: Expected = { ...failed, text: "Hello", asked: 1 }

/** The prompt of these tests, with its role and its tool, has 37 to 40 bytes. */
export const estimated = 10
