import { cpus } from "node:os"
import type { Adapter } from "../../../core/ports/model.ts"

/** What kind of processor answers are computed by: others may round otherwise. */
export const cpu = cpus()[0]?.model ?? "unknown"

/** Digest of all that answers are computed from; null where they can't be repeated. */
export const digestFor = (
  {
    digest,
    adapterDigests,
  }: {
    readonly digest?: string
    readonly adapterDigests: Readonly<Record<string, string>>
  },
  adapter: Adapter | undefined,
  tower?: string,
): string | null => {
  if (digest === undefined) return null
  const parts = [...(adapter ? [adapterDigests[adapter.id]] : []), ...(tower ? [tower] : [])]
  return [digest, ...parts].join("+")
}
