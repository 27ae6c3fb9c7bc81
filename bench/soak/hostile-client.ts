// All attacks (or those of `only`) beside each other, in a process of its own. Parent: { url, key,
// only } starts it, "finish" ends it and returns what the attacks got.
import { setTimeout } from "node:timers/promises"
import { attacks, type Target } from "./attacks.ts"
import type { HostileCounts } from "./samples.ts"

interface Start {
  readonly url: string
  readonly key: string
  readonly only?: readonly string[]
}

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

process.on("message", (message: "finish" | Start) => {
  if (message === "finish") {
    isStopped = true
    process.send?.(counts)
    return
  }
  const { hostname, port } = new URL(message.url)
  const target = { host: hostname, port: Number(port), key: message.key }
  const chosen = Object.entries(attacks).filter(([name]) => message.only?.includes(name) ?? true)
  for (const [name, { beside }] of chosen)
    for (let i = 0; i < beside; i++) void keepAttacking(name, target)
})
process.once("disconnect", () => process.exit(0))
