/// <reference types="@webgpu/types" />
import type { ProbeResult } from "./protocol.ts"

/** The part of the `webgpu` package that is used here; it is an optional one. */
interface Webgpu {
  create(options: readonly string[]): GPU
}

const packageName = "webgpu"

// the process was seen to abort when nothing referred to this any more while devices were in use
let kept: GPU | undefined

/** Throws where the package is missing or can't be loaded. */
const loadPackage = async (): Promise<Webgpu> => (await import(packageName)) as Webgpu

/**
 * Elsewhere it is Direct3D or Metal. Dawn hides the 16-bit floats of NVIDIA's driver, which ONNX
 * Runtime uses nevertheless: without the toggle `shader-f16` would be missing.
 */
const vulkan = ["backend=vulkan", "enable-dawn-features=vulkan_enable_f16_on_nvidia"]

/** The adapter that runs fastest, or null. */
const openAdapter = async (): Promise<GPUAdapter | null> => {
  const webgpu = await loadPackage()
  kept ??= webgpu.create(process.platform === "linux" ? vulkan : [])
  return kept.requestAdapter({ powerPreference: "high-performance" })
}

/** Asks the `webgpu` package for the adapter that runs fastest. */
export const probe = async (): Promise<ProbeResult> => {
  try {
    await loadPackage()
  } catch (cause) {
    return { type: "noPackage", reason: cause instanceof Error ? cause.message : String(cause) }
  }
  const adapter = await openAdapter()
  if (!adapter) return { type: "none" }
  const { vendor, architecture, device, description } = adapter.info
  return {
    type: "adapter",
    adapter: {
      vendor,
      architecture,
      device,
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

/**
 * The device for programs of engines' own (WGSL), with the buffers that the adapter allows; one for
 * the process. `lost` is called when it computes nothing any more.
 */
export const makeGpu = (lost: (reason: string) => void): (() => Promise<GPUDevice>) => {
  let opened: Promise<GPUDevice> | undefined
  const open = async () => {
    const adapter = await openAdapter()
    if (!adapter) throw new Error("no adapter for programs in WGSL")
    const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits
    const requiredLimits = { maxBufferSize, maxStorageBufferBindingSize }
    const device = await adapter.requestDevice({ requiredLimits })
    void device.lost.then(({ message }) => lost(message))
    return device
  }
  return () => {
    opened ??= open()
    return opened
  }
}
