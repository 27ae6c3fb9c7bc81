import { existsSync } from "node:fs"
import { constants } from "node:os"
import { fileURLToPath } from "node:url"

/** What native/addon.cpp exports. */
interface Addon {
  /** The kernels that this processor runs; empty where it has none of their instructions. */
  readonly instructions: string
  /** Whether sessions of this process know the operators. */
  isInUse(): boolean
  /** Gives free pages of malloc back to the system, in about 5 ms. */
  trimMemory(): void
  /** Asks for large pages in memory that nothing was written to yet; see native/large-pages.h. */
  adviseLargePages(memory: ArrayBufferLike): void
  // what sampling does (sampling/logits.ts); not there without instructions
  largest(logits: Float32Array): number
  largestAllowed(logits: Float32Array, mask: Uint32Array): number
  weigh(logits: Float32Array, largest: number, scale: number): number
  pick(weights: Float32Array, target: number): number
  listLikely(weights: Float32Array, least: number, tokens: Int32Array): number
}

/** Where the build puts the addon: beside the compiled copy of this module. */
const file = fileURLToPath(
  new URL(
    import.meta.url.endsWith(".ts")
      ? "../../../dist/plugins/backend-onnx/kernels/rakit-kernels.node"
      : "rakit-kernels.node",
    import.meta.url,
  ),
)

const load = (): Addon | undefined => {
  if (!existsSync(file)) return undefined
  const module = { exports: {} }
  try {
    // onnxruntime-node has to find the addon's symbols when it is loaded itself
    process.dlopen(module, file, constants.dlopen.RTLD_NOW | constants.dlopen.RTLD_GLOBAL)
  } catch {
    // built for another C library: sessions run without it
    return undefined
  }
  return module.exports as Addon
}

/** The native kernels; undefined where they were not built. Imported before onnxruntime-node. */
export const addon: Addon | undefined = load()
