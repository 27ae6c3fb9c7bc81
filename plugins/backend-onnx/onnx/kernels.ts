import { addon } from "../kernels/addon.ts"
import "./runtime.ts"

/**
 * Increment it whenever graphs for the kernels must be built again, and when the kernels' numbers
 * change: receipts name it within the graph's digest.
 */
const layoutVersion = "15"

/**
 * The version of the native kernels' layout, where sessions of this process have these kernels:
 * where they were built, and the processor has their instructions.
 */
export const kernelsVersion = (): string | undefined =>
  addon?.isInUse() ? layoutVersion : undefined

/** Whether the CPU has native kernels, which its graphs use; known before there is a session, unlike the version. */
export const hasKernels = (): boolean => Boolean(addon?.instructions)

/** The kernels that products run on, for logs. */
export const kernelsName = (): string | undefined =>
  addon?.isInUse() ? addon.instructions : undefined
