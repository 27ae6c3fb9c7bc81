import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os"

const load = () =>
  loadavg()
    .map((n) => n.toFixed(1))
    .join(" ")

/**
 * Where figures come from. A load average near or above the number of cores means that other
 * processes ran: trust ratios only.
 */
export const printMachine = (title: string, code: string): void => {
  const cores = availableParallelism()
  console.log(`${title}\n`)
  console.log(
    `machine  ${cores} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform} ${release()}, Node ${process.version}`,
  )
  console.log(`load     ${load()} (1, 5, 15 min) before the first round`)
  console.log(`code     ${code}`)
}

export const printLoadAfter = (startedMs: number): void => {
  console.log(
    `\nload     ${load()} after the last round; ${Math.round((performance.now() - startedMs) / 1000)} s in all`,
  )
}
