import { once } from "node:events"
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type ServerResponse,
} from "node:http"

export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage["headers"]
}

/** An HTTP server on 127.0.0.1 that remembers what it was asked. */
const listen = async (answer: RequestListener) => {
  const seen: Seen[] = []
  const server = createServer((req, res) => {
    seen.push({ method: req.method ?? "", url: req.url ?? "", headers: req.headers })
    answer(req, res)
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as { port: number }
  return {
    endpoint: `http://127.0.0.1:${port}`,
    seen,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    },
  }
}
export type Scripted = Awaited<ReturnType<typeof listen>>

const pass = (to: string, req: IncomingMessage, res: ServerResponse): void => {
  const { method, url, headers } = req
  const up = request(new URL(url ?? "/", to), { method, headers }, (reply) => {
    res.writeHead(reply.statusCode ?? 502, reply.headers)
    reply.pipe(res)
  })
  up.on("error", () => res.destroy())
  req.pipe(up)
}

/** Passes requests on as they are: signatures are about the host that the client named. */
export const startRecorder = (to: string, refuse?: (nth: number) => string | undefined) => {
  let nth = 0
  return listen((req, res) => {
    const code = refuse?.(++nth)
    if (code === undefined) pass(to, req, res)
    else answerError(req, res, code)
  })
}

const statusOf: Readonly<Record<string, number>> = { SlowDown: 503, RequestTimeTooSkewed: 403 }

const answerError = (req: IncomingMessage, res: ServerResponse, code: string): void => {
  req.resume()
  req.on("end", () => {
    res.writeHead(statusOf[code] ?? 400, { "content-type": "application/xml" })
    res.end(`<Error><Code>${code}</Code><Message>said the test</Message></Error>`)
  })
}

/** A server whose only answer is this error. */
export const startRefusing = (code: string) => listen((req, res) => answerError(req, res, code))
