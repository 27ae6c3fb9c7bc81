import type { ProbeResult } from "./protocol.ts"

/** The part of the package that is used here: an optional one, so its types may be missing, too. */
interface Webgpu {
  create(options: readonly string[]): {
    requestAdapter(options: {
      readonly powerPreference: "high-performance"
    }): Promise<Adapter | null>
  }
}
interface Adapter {
  readonly info: {
    readonly vendor: string
    readonly architecture: string
    readonly description: string
    readonly isFallbackAdapter?: boolean
  }
  readonly features: Iterable<string>
  readonly limits: { readonly maxBufferSize: number; readonly maxStorageBufferBindingSize: number }
}

const packageName = "webgpu"

/** Asks the `webgpu` package for the adapter that runs fastest. */
export const probe = async (): Promise<ProbeResult> => {
  let webgpu: Webgpu
  try {
    webgpu = (await import(packageName)) as Webgpu
  } catch (cause) {
    return { type: "noPackage", reason: cause instanceof Error ? cause.message : String(cause) }
  }
  // Direct3D on Windows, Metal on macOS
  const backends = process.platform === "linux" ? ["backend=vulkan"] : []
  const adapter = await webgpu
    .create(backends)
    .requestAdapter({ powerPreference: "high-performance" })
  if (!adapter) return { type: "none" }
  const { vendor, architecture, description } = adapter.info
  return {
    type: "adapter",
    adapter: {
      vendor,
      architecture,
      description,
      isSoftware: adapter.info.isFallbackAdapter === true,
      features: [...adapter.features],
      maxBufferBytes: Math.min(
        adapter.limits.maxBufferSize,
        adapter.limits.maxStorageBufferBindingSize,
      ),
    },
  }
}
