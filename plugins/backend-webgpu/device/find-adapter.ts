import { fork } from "node:child_process"
import { Effect } from "effect"
import type { FoundAdapter, ProbeResult } from "../process/protocol.ts"
import type { WebgpuSettings } from "../settings.ts"
import { childEntry, childEnvironment } from "./child-entry.ts"

const probeTimeout = "60 seconds"
const mostStderr = 65_536

interface Probed {
  readonly result: ProbeResult | undefined
  /** How the child ended, where it said nothing. */
  readonly end: string
  readonly stderr: string
}

const runProbe = (driver: string | undefined): Effect.Effect<Probed> =>
  Effect.callback<Probed>((resume) => {
    const child = fork(childEntry, ["probe"], {
      env: childEnvironment(driver),
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    })
    let result: ProbeResult | undefined
    let stderr = ""
    child.stderr!.on("data", (bytes: Buffer) => {
      stderr = (stderr + bytes).slice(-mostStderr)
    })
    child.on("message", (message: ProbeResult) => {
      result = message
    })
    const done = (end: string) => resume(Effect.succeed({ result, end, stderr }))
    child.on("error", (cause) => done(cause.message))
    child.on("close", (code, signal) => done(signal ?? `code ${code}`))
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

const install: Readonly<Record<string, string>> = {
  linux: "install the GPU's Vulkan driver (Mesa's mesa-vulkan-drivers, or NVIDIA's libnvidia-gl)",
  darwin: "use a Mac with Metal",
  win32: "install the GPU's driver",
}

/** Why there is no adapter, and what to do, in one line. */
const whyNone = ({ result, end, stderr }: Probed): string => {
  if (result?.type === "noPackage")
    return `the npm package webgpu is not installed (${result.reason.split("\n")[0]}): npm install webgpu@0.6.2`
  if (/libvulkan\S*: cannot open|couldn't load vulkan/i.test(stderr))
    return "there is no Vulkan loader: install libvulkan1 (Debian, Ubuntu), vulkan-loader (Fedora, Alpine) or vulkan-icd-loader (Arch)"
  const remedy = install[process.platform] ?? "install the GPU's driver"
  if (/found no drivers|INCOMPATIBLE_DRIVER/i.test(stderr))
    return `there is no Vulkan driver: ${remedy}`
  if (result?.type === "none")
    return `there is no GPU that WebGPU can use: ${remedy}, and see that this process may open /dev/dri or /dev/nvidia*`
  return `the probe of the GPU ended without an answer (${end}): ${remedy}`
}

/**
 * The name by which an adapter is shown. With Vulkan the description is that of the driver, and the
 * device is apart: `nvidia-h200, NVIDIA: 580.159.04 580.159.4.0`.
 */
export const nameOf = ({ device, description, vendor, architecture }: FoundAdapter): string => {
  const model = /^0x/i.test(device) ? "" : device.replace(/-+$/, "")
  const driver = description || [vendor, architecture].filter(Boolean).join(" ")
  return [model, driver].filter(Boolean).join(", ") || "unnamed"
}

/** Looks for a GPU, in a child that may crash. Fails with one line that says what to install. */
export const findAdapter = ({
  driver,
  allowSoftware,
}: Pick<WebgpuSettings, "driver" | "allowSoftware">): Effect.Effect<FoundAdapter, string> =>
  runProbe(driver).pipe(
    Effect.timeoutOrElse({
      duration: probeTimeout,
      orElse: () =>
        Effect.succeed({ result: undefined, end: `nothing within ${probeTimeout}`, stderr: "" }),
    }),
    Effect.flatMap((probed): Effect.Effect<FoundAdapter, string> => {
      if (probed.result?.type !== "adapter") return Effect.fail(whyNone(probed))
      const { adapter } = probed.result
      return adapter.isSoftware && !allowSoftware
        ? Effect.fail(
            `the only adapter is '${nameOf(adapter)}', which is software and slower than the CPU: ${install[process.platform]}, or set allowSoftware for tests`,
          )
        : Effect.succeed(adapter)
    }),
  )
