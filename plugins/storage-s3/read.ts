import { GetObjectCommand, type GetObjectCommandOutput } from "@aws-sdk/client-s3"
import type { ByteRange } from "../../core/ports/storage.ts"
import { pauseMs } from "./retry-budget.ts"
import { isMissing, statusOf } from "./s3-errors.ts"
import type { Store } from "./store.ts"

interface Position {
  next: number
  /** The last byte wanted; known at the latest with the first answer. */
  last: number | undefined
  /** Names the version that is read. */
  etag: string | undefined
}

const rangeOf = ({ next, last }: Position): string | undefined =>
  next === 0 && last === undefined ? undefined : `bytes=${next}-${last ?? ""}`

/** `bytes 5-9/10`: the last byte of the range that the store sends. */
const lastOf = ({ ContentRange, ContentLength }: GetObjectCommandOutput, from: number): number => {
  const last = /^bytes \d+-(\d+)\//.exec(ContentRange ?? "")?.[1]
  return last === undefined ? from + (ContentLength ?? 0) - 1 : Number(last)
}

const ask = async (store: Store, key: string, at: Position, signal: AbortSignal) => {
  const Range = rangeOf(at)
  const answer = await store.client.send(
    new GetObjectCommand({
      Bucket: store.bucket,
      Key: store.keys.of(key),
      ...(Range !== undefined && { Range }),
      ...(at.etag !== undefined && { IfMatch: at.etag }),
    }),
    { abortSignal: signal },
  )
  at.etag ??= answer.ETag
  at.last = lastOf(answer, at.next)
  return answer.Body as AsyncIterable<Uint8Array> | undefined
}

/** Emits what one answer brings, and moves on with it. */
async function* receive(body: AsyncIterable<Uint8Array> | undefined, at: Position) {
  if (body === undefined) return
  for await (const chunk of body) {
    at.next += chunk.byteLength
    yield chunk
  }
}

/** Whether another try changes nothing: 416 is a range beyond the end. */
const isFinal = (cause: unknown): boolean => {
  const status = statusOf(cause)
  return isMissing(cause) || (status !== undefined && status >= 400 && status < 500)
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener("abort", () => {
      clearTimeout(timer)
      reject(signal.reason)
    })
  })

/** Takes a connection that broke up again where it was, in the same version, or fails. */
async function* readOn(store: Store, key: string, at: Position, signal: AbortSignal) {
  for (let failures = 0; at.last === undefined || at.next <= at.last; ) {
    const before = at.next
    try {
      yield* receive(await ask(store, key, at, signal), at)
      if (at.last !== undefined && at.next <= at.last) throw new Error("the answer was cut short")
    } catch (cause) {
      if (at.next > before) failures = 0
      failures += 1
      const mayRetry = !signal.aborted && !isFinal(cause) && failures < store.settings.attempts
      if (!mayRetry || !store.budget.take()) throw cause
      await pause(pauseMs(failures), signal)
    }
  }
}

/** A range beyond the end is empty, as is one that ends before it starts. */
async function* readRange(
  store: Store,
  key: string,
  { from, to }: ByteRange,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const isEmpty = to !== undefined && to < from
  const at: Position = isEmpty
    ? { next: 0, last: 0, etag: undefined }
    : { next: from, last: to, etag: undefined }
  try {
    // a missing blob is missing for an empty range, too
    if (isEmpty) await ask(store, key, at, signal)
    else yield* readOn(store, key, at, signal)
  } catch (cause) {
    if (statusOf(cause) !== 416) throw cause
  }
}

/** Bytes of one version of a blob. Whoever stops reading cancels the request at once. */
export const readBlob = (
  store: Store,
  key: string,
  range: ByteRange = { from: 0 },
): AsyncIterable<Uint8Array> => ({
  [Symbol.asyncIterator]: () => {
    const cancel = new AbortController()
    const bytes = readRange(store, key, range, cancel.signal)
    return {
      next: () => bytes.next(),
      return: async () => {
        cancel.abort()
        await bytes.return(undefined).catch(() => {})
        return { done: true, value: undefined }
      },
    }
  },
})
