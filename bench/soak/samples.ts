export type Kind = "health" | "first token" | "stream" | "chat" | "embeddings" | "file" | "batch"

export const kinds: readonly Kind[] = [
  "health",
  "first token",
  "stream",
  "chat",
  "embeddings",
  "file",
  "batch",
]

/** What the honest client measured, and what it got instead of a good reply. */
export interface HonestSamples {
  readonly times: (readonly [kind: Kind, ms: number])[]
  readonly failures: Record<string, number>
}

/** Replies to the hostile client by attack and status; `closed`: the server hung up. */
export type HostileCounts = Record<string, Readonly<Record<string, number>>>
