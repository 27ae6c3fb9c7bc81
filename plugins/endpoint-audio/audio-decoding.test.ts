import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { readAudio } from "./audio-decoding.ts"
import type { Source } from "./schema.ts"
import { id3, mp3, slowMp3Frame, wav } from "./testing/sounds.ts"

const read = (source: Source, maxSeconds = 1_800) =>
  Effect.runPromise(
    readAudio(source, maxSeconds).pipe(
      Effect.map(({ format, seconds }) => [format, seconds]),
      Effect.catch(({ code, param, message }) => Effect.succeed({ code, param, message })),
    ),
  )

const zeros = (name: string, bytes: number): Buffer => {
  const chunk = Buffer.alloc(8 + bytes + (bytes % 2))
  chunk.write(name, 0, "latin1")
  chunk.writeUInt32LE(bytes, 4)
  return chunk
}

describe("the length of a file", () => {
  it.each<[string, Buffer, string, number]>([
    ["WAV", wav({ seconds: 2 }), "wav", 2],
    ["WAV, rounded up", wav({ seconds: 2.0001, rate: 48_000 }), "wav", 3],
    ["stereo of 24 bits", wav({ seconds: 3, channels: 2, bits: 24, rate: 44_100 }), "wav", 3],
    ["floats", wav({ seconds: 1, kind: 3, bits: 32 }), "wav", 1],
    ["WAV with other chunks, of an odd size, too", wav({ between: zeros("LIST", 7) }), "wav", 1],
    ["WAV of unknown length", wav({ seconds: 4, said: 0xffff_ffff }), "wav", 4],
    ["WAV with bytes behind its samples", Buffer.concat([wav(), zeros("LIST", 6)]), "wav", 1],
    ["MP3", mp3(100), "mp3", 3], // 2.6 s
    ["MP3 of 16,000 Hz", mp3(100, slowMp3Frame()), "mp3", 4], // 3.6 s
    ["MP3 with tags", Buffer.concat([id3(300), mp3(10), Buffer.from("TAG")]), "mp3", 1],
    ["MP3 with padding", Buffer.concat([mp3(10), Buffer.alloc(600)]), "mp3", 1],
  ])("of %s is that of its sound", async (_, file, format, seconds) => {
    expect(await read(file)).toEqual([format, seconds])
    expect(await read(file.toString("base64"))).toEqual([format, seconds])
    expect(await read(`data:audio/x;base64,${file.toString("base64")}`)).toEqual([format, seconds])
  })
})

describe("what is handed on", () => {
  const handedOn = async (file: Buffer) =>
    Buffer.from((await Effect.runPromise(readAudio(file, 1_800))).audio)

  it("is what was counted: decoders find sound behind tags, and a second chunk of samples", async () => {
    const hidden = Buffer.concat([Buffer.from("APETAGEX"), Buffer.alloc(24), mp3(900)])
    expect(await handedOn(Buffer.concat([id3(30), mp3(10), hidden]))).toEqual(mp3(10))
    const within = Buffer.from(id3(417 * 20))
    within.set(mp3(20), 10)
    expect(await handedOn(Buffer.concat([within, mp3(10)]))).toEqual(mp3(10))
    const twice = Buffer.concat([wav({ seconds: 1 }), wav({ seconds: 60 }).subarray(36)])
    expect(await handedOn(twice)).toEqual(wav({ seconds: 1 }))
    expect(await handedOn(wav({ seconds: 2 }))).toEqual(wav({ seconds: 2 }))
  })
})

describe("what is refused", () => {
  const headOnly = wav().subarray(0, 36)
  it.each<[string, Source, string, RegExp]>([
    ["nothing", Buffer.alloc(0), "invalid_request_error", /empty/],
    ["no sound", wav({ seconds: 0 }), "invalid_request_error", /no sound/],
    ["a cut WAV", wav({ said: 1e6 }), "invalid_request_error", /cut off/],
    ["a WAV that is all header", headOnly, "invalid_request_error", /cut off/],
    ["a WAV within its format", wav().subarray(0, 30), "invalid_request_error", /cut off/],
    ["a rate of 0", wav({ rate: 0 }), "invalid_request_error", /4000 to 384000 samples/],
    ["a rate of a million", wav({ seconds: 0.01, rate: 1e6 }), "invalid_request_error", /not 1000/],
    ["no channel", wav({ channels: 0 }), "invalid_request_error", /channels/],
    ["nine channels", wav({ channels: 9 }), "invalid_request_error", /1 to 8 channels/],
    ["ADPCM", wav({ kind: 2 }), "invalid_request_error", /compressed/],
    ["12 bits", wav({ bits: 12, channels: 2 }), "invalid_request_error", /unusual/],
    ["samples first", Buffer.concat([wav().subarray(0, 12), zeros("data", 8)]), "", /before their/],
    ["a cut MP3", mp3(10).subarray(0, 4_000), "invalid_request_error", /not whole/],
    ["an MP3 with a hole", Buffer.concat([mp3(9), Buffer.from("oops"), mp3(1)]), "", /byte 3753/],
    ["MP3s in a row", Buffer.concat([mp3(9), Buffer.from("TAG"), mp3(9)]), "", /byte 3753/],
    ["an MP3 that is all tag", id3(20), "invalid_request_error", /no sound/],
    ["a tag that is cut", id3(300).subarray(0, 200), "invalid_request_error", /within its tags/],
    ["text", Buffer.from("hello"), "unsupported_file_type", /WAV or MP3/],
    ["an Ogg file", Buffer.from("OggS and more"), "unsupported_file_type", /WAV or MP3/],
    ["what is no base64", "hello!", "invalid_request_error", /base64/],
  ])("%s", async (_, source, code, message) => {
    expect(await read(source)).toEqual({
      code: code || "invalid_request_error",
      param: "file",
      message: expect.stringMatching(message),
    })
  })

  it("more chunks or tags than any file has", async () => {
    const invalid = { code: "invalid_request_error", param: "file" }
    const chunks = Buffer.concat([wav().subarray(0, 36), ...Array(1_000).fill(zeros("JUNK", 0))])
    expect(await read(chunks)).toMatchObject({
      ...invalid,
      message: "file: has more than 1000 chunks before its samples",
    })
    const tags = (count: number) => Buffer.concat([...Array(count).fill(id3(4)), mp3(5)])
    expect(await read(tags(16))).toEqual(["mp3", 1])
    expect(await read(tags(17))).toMatchObject({
      ...invalid,
      message: "file: is damaged: there is no sound at byte 224",
    })
  })

  it("a file that is too long, or too large", async () => {
    expect(await read(wav({ seconds: 3 }), 3)).toEqual(["wav", 3])
    const long = { code: "invalid_request_error", param: "file" }
    expect(await read(wav({ seconds: 3.1 }), 3)).toMatchObject({
      ...long,
      message: "file: has 4 s of audio; at most 3 s are transcribed",
    })
    // an hour of silence has 3.6 MB at the lowest bit rate
    expect(await read(mp3(100_000, slowMp3Frame()))).toMatchObject(long)
    expect(await read(Buffer.alloc(25 * 2 ** 20 + 1))).toMatchObject({ code: "payload_too_large" })
  })

  it("every file that is cut anywhere, and none that is changed hurts", async () => {
    const files = [wav({ seconds: 0.01 }), Buffer.concat([id3(20), mp3(3)])]
    for (const file of files)
      for (let at = 1; at < file.length; at += 7) {
        const cut = await read(file.subarray(0, at))
        // an MP3 that ends with a frame is whole
        if (Array.isArray(cut)) expect([at - 30, cut[0]]).toEqual([expect.any(Number), "mp3"])
        else expect(cut.param).toBe("file")
        const changed = Buffer.from(file)
        changed[at] = 255
        const seen = await read(changed)
        if (!Array.isArray(seen)) expect(seen.param).toBe("file")
      }
  })
})
