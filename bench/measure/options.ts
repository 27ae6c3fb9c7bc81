import { parseArgs } from "node:util"

/** Parses `--rounds N` and `--ms N`, with the bench's defaults. */
export interface Options {
  readonly rounds: number
  /** Duration of one measurement of one side. */
  readonly ms: number
  /** Where the server spends its CPU time, in place of the measurement. */
  readonly profile: boolean
}

const positive = (name: string, text: string | undefined, fallback: number): number => {
  const value = Number(text ?? fallback)
  if (!(value > 0)) throw new Error(`--${name} must be a number above 0`)
  return value
}

export const readOptions = (fallback: Omit<Options, "profile">): Options => {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string" },
      ms: { type: "string" },
      profile: { type: "boolean" },
    },
  })
  return {
    profile: values.profile === true,
    rounds: Math.ceil(positive("rounds", values.rounds, fallback.rounds)),
    ms: positive("ms", values.ms, fallback.ms),
  }
}
