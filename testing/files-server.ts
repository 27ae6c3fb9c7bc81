import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface SeenRequest {
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  /** Bytes of the body that were written to the socket. */
  sentBytes: number
}

export interface ServedFile {
  readonly body: Buffer
  readonly etag?: string | undefined
  readonly lastModified?: string
  readonly contentType?: string
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Returns after how many bytes the n-th request (from 0) is reset, or stalls if `silent`;
   * undefined to send all.
   */
  readonly cut?: (
    request: number,
  ) => { readonly afterBytes: number; readonly silent?: boolean } | undefined
  /** Pause between chunks of 64 kB. */
  readonly pauseMs?: number
  /** Ignores Range headers and sends the whole file with 200. */
  readonly noRanges?: boolean
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void

export interface FileServer {
  readonly url: string
  readonly seen: SeenRequest[]
  file(path: string, file: ServedFile): void
  json(path: string, value: unknown, headers?: Readonly<Record<string, string>>): void
  handle(path: string, handler: Handler): void
  close(): Promise<void>
}

const rangeStart = (request: IncomingMessage, file: ServedFile): number => {
  const start = /^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1]
  const ifRange = request.headers["if-range"]
  const same = ifRange === undefined || ifRange === file.etag || ifRange === file.lastModified
  return start === undefined || !same || file.noRanges ? 0 : Number(start)
}

const send = async (
  response: ServerResponse,
  bytes: Buffer,
  file: ServedFile,
  count: number,
  seen: SeenRequest,
): Promise<void> => {
  const cut = file.cut?.(count)
  const until = Math.min(bytes.length, cut?.afterBytes ?? bytes.length)
  for (let at = 0; at < until && !response.destroyed; at += 65_536) {
    const piece = bytes.subarray(at, Math.min(until, at + 65_536))
    await new Promise((resolve) => response.write(piece, resolve))
    seen.sentBytes += piece.length
    if (file.pauseMs) await new Promise((resolve) => setTimeout(resolve, file.pauseMs))
  }
  if (cut?.silent) return
  if (cut) response.destroy()
  else response.end()
}

const serve = (
  file: ServedFile,
  request: IncomingMessage,
  response: ServerResponse,
  count: number,
  seen: SeenRequest,
): void => {
  const start = rangeStart(request, file)
  const total = file.body.length
  const common = {
    ...(file.etag && { etag: file.etag }),
    ...(file.lastModified && { "last-modified": file.lastModified }),
    "content-type": file.contentType ?? "application/octet-stream",
    ...file.headers,
  }
  if (start > 0 && start >= total) {
    response.writeHead(416, { ...common, "content-range": `bytes */${total}` }).end()
    return
  }
  const partial = start > 0 ? { "content-range": `bytes ${start}-${total - 1}/${total}` } : {}
  response.writeHead(start > 0 ? 206 : 200, {
    ...common,
    ...partial,
    "content-length": total - start,
  })
  send(response, file.body.subarray(start), file, count, seen).catch(() => response.destroy())
}

/** An HTTP server on 127.0.0.1 that supports ranges and fails where `cut` says. */
export const startFileServer = async (): Promise<FileServer> => {
  const seen: SeenRequest[] = []
  const handlers = new Map<
    string,
    (request: IncomingMessage, response: ServerResponse, seen: SeenRequest) => void
  >()
  const server = createServer((request, response) => {
    const path = request.url ?? ""
    const entry: SeenRequest = { path, headers: request.headers, sentBytes: 0 }
    seen.push(entry)
    const handler = handlers.get(path)
    if (handler) handler(request, response, entry)
    else response.writeHead(404).end("not here")
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    file: (path, file) => {
      let count = 0
      handlers.set(path, (request, response, entry) =>
        serve(file, request, response, count++, entry),
      )
    },
    json: (path, value, headers) =>
      handlers.set(path, (_, response) =>
        response
          .writeHead(200, { "content-type": "application/json", ...headers })
          .end(JSON.stringify(value)),
      ),
    handle: (path, handler) => handlers.set(path, handler),
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
