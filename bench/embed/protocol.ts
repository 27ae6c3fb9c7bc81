/** The protocol between bench/embed.ts and a child process with one embedder (`peers/callers.js`). */
export interface Calls {
  readonly texts: readonly string[]
  /** How many calls are in flight. */
  readonly callers: number
  /** Texts of a call. */
  readonly size: number
  readonly ms: number
}

export interface CallTimes {
  /** Texts a second of all callers together. */
  readonly perSecond: number
  /** Median time of one call. */
  readonly medianMs: number
}

export type Embed = (texts: readonly string[]) => Promise<readonly Float32Array[]>

/** Serves the protocol in this process; `close` is called before it ends. */
export const serveEmbedder = async (embed: Embed, close?: () => Promise<void>): Promise<void> => {
  const path = "../peers/callers.js"
  const peer = (await import(path)) as { readonly serveEmbedder: typeof serveEmbedder }
  await peer.serveEmbedder(embed, close)
}
