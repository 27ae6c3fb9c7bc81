import type { Hold } from "./lease.ts"
import type { Kind } from "./results.ts"

export const partPrefix = "batches/"

/** With the epoch: what a worker writes that has lost its batch lies beside what the new one writes, never in its place. */
export const partKey = ({ id, epoch }: Hold, part: number, kind: Kind): string =>
  `${partPrefix}${id}/${epoch}-${part}-${kind}`

/** Whose worker wrote it; undefined: it is none of ours. */
export const readPartKey = (key: string): Hold | undefined => {
  const [, id, epoch] = /^batches\/([^/]+)\/(\d+)-\d+-(?:output|error)$/.exec(key) ?? []
  return id !== undefined && epoch !== undefined ? { id, epoch: Number(epoch) } : undefined
}
