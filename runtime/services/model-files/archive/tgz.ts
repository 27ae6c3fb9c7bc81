import { createReadStream } from "node:fs"
import { pipeline } from "node:stream"
import { createGunzip } from "node:zlib"
import { Parser, type ReadEntry } from "tar"
import { DamagedContent } from "../failure.ts"
import { isSafePath } from "../safe-path.ts"
import type { UnpackSink } from "./sink.ts"

const fileTypes = new Set(["File", "OldFile", "ContiguousFile"])

/** Removes the top folder, mostly `package`, as npm does when it unpacks. */
const withoutTop = (path: string): string => {
  const plain = path.replace(/^\.\//, "")
  if (!isSafePath(plain))
    throw new DamagedContent(`the archive holds an unsafe path: ${JSON.stringify(path)}`)
  return plain.slice(plain.indexOf("/") + 1)
}

/** Iterates an entry. Its own iterator would wait for ever after a destroy between two chunks. */
const chunksOf = async function* (
  entry: ReadEntry,
  failure: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const iterator = entry[Symbol.asyncIterator]()
  for (;;) {
    failure.throwIfAborted()
    const next = await iterator.next()
    if (next.done) return
    yield next.value
  }
}

const unpackEntry = async (
  entry: ReadEntry,
  sink: UnpackSink,
  failure: AbortSignal,
): Promise<void> => {
  if (entry.type === "Directory") return void entry.resume()
  if (!fileTypes.has(entry.type))
    throw new DamagedContent(`the archive holds a link or device: ${JSON.stringify(entry.path)}`)
  const path = withoutTop(entry.path)
  sink.check(path, entry.size)
  await sink.write(path, chunksOf(entry, failure))
}

/**
 * A parser whose entries are written one after the other. Fails with the first error of the parser
 * or of a write.
 */
const makeReader = (sink: UnpackSink) => {
  const failure = new AbortController()
  const failed = new Promise<never>((_, reject) =>
    failure.signal.addEventListener("abort", () => reject(failure.signal.reason), { once: true }),
  )
  failed.catch(() => {})
  let latest: ReadEntry | undefined
  const fail = (error: unknown) => {
    if (failure.signal.aborted) return
    failure.abort(error)
    // otherwise its writer would wait for ever
    latest?.destroy(new DamagedContent("the archive is damaged"))
  }
  let writing: Promise<void> = Promise.resolve()
  const parser = new Parser({
    strict: true,
    onReadEntry: (entry) => {
      entry.on("error", fail)
      latest = entry
      writing = writing.then(() =>
        failure.signal.aborted ? undefined : unpackEntry(entry, sink, failure.signal),
      )
      writing.catch(fail)
    },
  })
  parser.on("error", fail)
  const ended = new Promise<void>((resolve) => parser.on("end", resolve))
  return {
    write: async (chunk: Buffer): Promise<void> => {
      failure.signal.throwIfAborted()
      if (!parser.write(chunk))
        await Promise.race([failed, new Promise<void>((resolve) => parser.once("drain", resolve))])
    },
    end: async (): Promise<void> => {
      parser.end()
      await Promise.race([failed, ended.then(() => writing)])
    },
    /** Fails what is open, and waits until nothing is being written. */
    settle: async (error: unknown): Promise<void> => {
      fail(error)
      await writing.catch(() => {})
    },
  }
}

export const unpackTgz = async (
  archive: string,
  sink: UnpackSink,
  signal: AbortSignal,
): Promise<void> => {
  const reader = makeReader(sink)
  const gunzip = pipeline(createReadStream(archive, { signal }), createGunzip(), () => {})
  let bytes = 0
  try {
    for await (const chunk of gunzip) {
      bytes += chunk.length
      sink.bound(bytes)
      await reader.write(chunk)
    }
    await reader.end()
  } catch (error) {
    await reader.settle(error)
    throw error
  }
}
