import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/** Collects all garbage of earlier turns: what is held weakly lives until the end of its turn. */
export const collectGarbage = async (): Promise<void> => {
  await new Promise((resolve) => setImmediate(resolve))
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("globalThis.gc") as () => void
  collect()
}
