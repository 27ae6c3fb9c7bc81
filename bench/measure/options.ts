import { parseArgs } from "node:util"

/** Parses `--rounds N` and `--ms N`, with the bench's defaults. */
export interface Options {
  readonly rounds: number
  /** Duration of one measurement of one side. */
  readonly ms: number
}

const positive = (name: string, text: string | undefined, fallback: number): number => {
  const value = Number(text ?? fallback)
  if (!(value > 0)) throw new Error(`--${name} must be a number above 0`)
  return value
}

export const readOptions = (fallback: Options): Options => {
  const { values } = parseArgs({ options: { rounds: { type: "string" }, ms: { type: "string" } } })
  return {
    rounds: Math.ceil(positive("rounds", values.rounds, fallback.rounds)),
    ms: positive("ms", values.ms, fallback.ms),
  }
}
