import type { EngineOpener } from "../engine/open-engine.ts"
export const openBert: EngineOpener<never, never, never> = async () => {
  throw new Error("later")
}
