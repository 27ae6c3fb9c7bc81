/**
 * The intervals and timeouts of the server. `pingMs` is the default of the config's
 * `server.ssePingMs`; the timeout of a drain is the caller's
 * (`server.drainTimeoutMs`), and that of a call belongs to the call path (`server.callTimeoutMs`).
 */
export interface HttpTimings {
  /**
   * Interval of the `: ping` comments on an event stream, which keep proxies from closing a quiet
   * one.
   */
  readonly pingMs: number
  /**
   * The head of an event stream leaves this long after its call was admitted, if no event came
   * before: an immediate refusal, such as `backend_busy`, still gets its status.
   */
  readonly headMs: number
  /** A client that reads nothing for this long while a reply is being written is disconnected. */
  readonly writeStallMs: number
  /** From the first byte of a request to the end of its headers (408). */
  readonly headersTimeoutMs: number
  /** From the first byte of a request to the end of its body (408). */
  readonly requestTimeoutMs: number
  /**
   * How long a body over 64 KB may keep the server waiting, beyond the time that 64 bytes a
   * millisecond take (408): it holds memory.
   */
  readonly bodyStallMs: number
  /** How often the timeouts of headers and requests are checked. */
  readonly timeoutCheckMs: number
  /** An idle connection is closed after this long. */
  readonly keepAliveTimeoutMs: number
  /**
   * After a refusal with an unread body: how long the rest of it is discarded, so that the reply
   * reaches the client.
   */
  readonly lingerMs: number
  /** How long a start waits for a port that another process has, which may be dying. */
  readonly portWaitMs: number
  /** How often it is checked whether a client that sends no more still reads. */
  readonly halfClosedCheckMs: number
  /** Timeout of one health check. */
  readonly checkTimeoutMs: number
  /** After the drain's timeout: how long interrupted calls have to settle. */
  readonly settleMs: number
}

export const defaultHttpTimings: HttpTimings = {
  pingMs: 15_000,
  headMs: 250,
  writeStallMs: 60_000,
  headersTimeoutMs: 20_000,
  requestTimeoutMs: 120_000,
  bodyStallMs: 10_000,
  timeoutCheckMs: 2_000,
  keepAliveTimeoutMs: 65_000,
  lingerMs: 5_000,
  portWaitMs: 10_000,
  halfClosedCheckMs: 1_000,
  checkTimeoutMs: 2_000,
  settleMs: 5_000,
}
