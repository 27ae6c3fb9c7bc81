const megabyte = 2 ** 20

/**
 * What the server refuses. Bodies have their own limit at each endpoint (`maxBodyBytes`); how long
 * things may take is in timings.ts.
 */
export interface HttpLimits {
  /** Request line and headers (431). */
  readonly maxHeaderBytes: number
  /** Path and query, in characters (414). */
  readonly maxUrlLength: number
  /** Further connections are closed at once. */
  readonly maxConnections: number
  /** Bodies of all open requests together (429 `backend_busy`). */
  readonly maxBufferedBytes: number
  /** The same for each account (429 `concurrency_exceeded`). No body may be larger (413). */
  readonly maxBufferedBytesPerAccount: number
}

export const defaultHttpLimits: HttpLimits = {
  maxHeaderBytes: 16 * 1024,
  maxUrlLength: 8 * 1024,
  maxConnections: 10_000,
  maxBufferedBytes: 128 * megabyte,
  maxBufferedBytesPerAccount: 64 * megabyte,
}
