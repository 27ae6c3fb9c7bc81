import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"

export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly status: { readonly code: number; readonly message?: string }
  readonly attributes: readonly {
    readonly key: string
    readonly value: Readonly<Record<string, string | number>>
  }[]
}

/** A collector of OTLP/HTTP with JSON that keeps what it receives. */
export const openOtlpCollector = async () => {
  const spans: ReceivedSpan[] = []
  const bodies: string[] = []
  const headers: IncomingHttpHeaders[] = []
  const server = createServer(async (req, res) => {
    let body = ""
    for await (const piece of req.setEncoding("utf8")) body += piece
    bodies.push(body)
    headers.push(req.headers)
    for (const { scopeSpans } of JSON.parse(body).resourceSpans)
      for (const scope of scopeSpans) spans.push(...scope.spans)
    res.writeHead(200, { "content-type": "application/json" }).end("{}")
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    bodies,
    headers,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
