import type { ServerResponse } from "node:http"
import type { Exchange } from "../exchange.ts"

const waiting = new WeakSet<ServerResponse>()

/** The client sent `Expect: 100-continue`: it holds its body back until it knows that we want it. */
export const expectsContinue = (res: ServerResponse): void => {
  waiting.add(res)
}

export const readyForBody = ({ res }: Exchange): void => {
  if (waiting.delete(res) && !res.headersSent) res.writeContinue()
}
