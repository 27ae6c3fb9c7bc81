import { readFileSync } from "node:fs"
import { arch } from "node:os"

/** x86 without VNNI adds products of 8 bits with saturation, so engines refuse int8-channel there. */
const addsExactly = (): boolean => {
  if (arch() !== "x64") return true
  try {
    return /vnni/.test(readFileSync("/proc/cpuinfo", "utf8"))
  } catch {
    return false
  }
}

/** The precisions by channel that this CPU can run: tests leave out the others. */
export const channelPrecisions: readonly "int8-channel"[] = addsExactly() ? ["int8-channel"] : []

/** Prompts read in 8 bits by channel, answers written in 4; nothing where the CPU can't. */
export const apartPrecisions = channelPrecisions.map((promptPrecision) => ({
  precision: "int4" as const,
  promptPrecision,
}))
