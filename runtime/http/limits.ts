const megabyte = 2 ** 20

/** What the server bears before it refuses. Bodies have their limit at the endpoint (`maxBodyBytes`). */
export interface HttpLimits {
  /** A quiet event stream gets a `: ping` comment this often. */
  readonly pingMs: number
  /** A client that reads nothing for this long while we have something to write is cut. */
  readonly writeStallMs: number
  /** From the first byte of a request to the end of its headers (408). */
  readonly headersTimeoutMs: number
  /** From the first byte of a request to the end of its body (408). */
  readonly requestTimeoutMs: number
  /** How often these two are looked at. */
  readonly timeoutCheckMs: number
  readonly keepAliveTimeoutMs: number
  /** Request line and headers (431). */
  readonly maxHeaderBytes: number
  /** Path and query (414). */
  readonly maxUrlLength: number
  /** More are closed at once. */
  readonly maxConnections: number
  /** Bodies of all open requests together (429 `backend_busy`). */
  readonly maxBufferedBytes: number
  /** After a refusal without having read the body: how long the rest of it is thrown away, so that the answer reaches the client. */
  readonly lingerMs: number
  /** One health check may take this long. */
  readonly checkTimeoutMs: number
  /** After the drain timeout: how long cut calls have to settle. */
  readonly settleMs: number
}

export const defaultHttpLimits: HttpLimits = {
  pingMs: 15_000,
  writeStallMs: 60_000,
  headersTimeoutMs: 20_000,
  requestTimeoutMs: 120_000,
  timeoutCheckMs: 2_000,
  keepAliveTimeoutMs: 65_000,
  maxHeaderBytes: 16 * 1024,
  maxUrlLength: 8 * 1024,
  maxConnections: 10_000,
  maxBufferedBytes: 512 * megabyte,
  lingerMs: 5_000,
  checkTimeoutMs: 2_000,
  settleMs: 5_000,
}
