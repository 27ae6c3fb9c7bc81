import { Effect, Stream } from "effect"
import { type DocumentReader, IngestFailure } from "./document-reader.ts"

const empty = new IngestFailure({
  code: "empty",
  message: "The file is empty.",
})

/**
 * Reads TXT and MD as UTF-8, in pieces of the same length, without regard to sentences.
 */
export const makeTextReader = (chunkCharacters: number): DocumentReader => ({
  read: (_, bytes) =>
    Stream.unwrap(
      Effect.map(Stream.runCollect(bytes), (parts) => {
        // a wrong byte becomes a mark that can be seen
        const characters = Array.from(Buffer.concat([...parts]).toString())
        if (characters.length === 0) return Stream.fail(empty)
        const chunks = Array.from(
          { length: Math.ceil(characters.length / chunkCharacters) },
          (_, index) => {
            const start = index * chunkCharacters
            const end = Math.min(start + chunkCharacters, characters.length)
            return { index, text: characters.slice(start, end).join(""), start, end }
          },
        )
        const last = { chunks, characters: characters.length }
        return Stream.make(last)
      }),
    ),
})
