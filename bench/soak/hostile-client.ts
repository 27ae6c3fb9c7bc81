// All attacks beside each other, in a process of its own. Parent: { url, key } starts it, "finish"
// ends it and returns what the attacks got.
import { setTimeout } from "node:timers/promises"
import { attacks, type Target } from "./attacks.ts"
import type { HostileCounts } from "./samples.ts"

const counts: HostileCounts = {}
let isStopped = false

const note = (name: string, what: string) => {
  const before = counts[name] ?? {}
  counts[name] = { ...before, [what]: (before[what] ?? 0) + 1 }
}

const keepAttacking = async (name: string, target: Target) => {
  const { attack, pauseMs } = attacks[name]!
  while (!isStopped) {
    const what = await attack(target).catch((error) => (error as { code?: string }).code ?? "error")
    if (!isStopped) note(name, what)
    await setTimeout(pauseMs)
  }
}

process.on("message", (message: "finish" | { url: string; key: string }) => {
  if (message === "finish") {
    isStopped = true
    process.send?.(counts)
    return
  }
  const { hostname, port } = new URL(message.url)
  const target = { host: hostname, port: Number(port), key: message.key }
  for (const [name, { beside }] of Object.entries(attacks))
    for (let i = 0; i < beside; i++) void keepAttacking(name, target)
})
process.once("disconnect", () => process.exit(0))
