import type { ServerResponse } from "node:http"
import type { Exchange } from "../exchange.ts"

const waiting = new WeakSet<ServerResponse>()

/**
 * Remembers that the client sent `Expect: 100-continue` and holds its body back (RFC 9110, section
 * 10.1.1).
 */
export const expectsContinue = (res: ServerResponse): void => {
  waiting.add(res)
}

/** Whether it was not asked for its body yet: node then closes the connection after the reply. */
export const holdsBodyBack = (res: ServerResponse): boolean => waiting.has(res)

/** Sends `100 Continue` where the client waits for it. */
export const readyForBody = ({ res }: Exchange): void => {
  if (waiting.delete(res) && !res.headersSent) res.writeContinue()
}
