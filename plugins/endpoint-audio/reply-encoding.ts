import { rupiahNumber } from "../../core/money.ts"
import type { TranscriptSpan } from "../../core/ports/audio.ts"
import type { Call } from "../../core/ports/endpoint.ts"
import type { Format, Segment, TranscriptionUsage } from "./schema.ts"

export interface Piece {
  readonly text: string
  readonly span?: TranscriptSpan
}

/** All that the model said. */
export interface Transcript {
  readonly pieces: readonly Piece[]
  readonly language: string | undefined
}

export const textOf = ({ pieces }: Pick<Transcript, "pieces">): string =>
  pieces
    .map(({ text }) => text)
    .join("")
    .trim()

export const usageNow = (
  call: Pick<Call<unknown>, "used" | "cost">,
  model: string,
): TranscriptionUsage => ({
  type: "duration",
  seconds: call.used()[model]?.audioSeconds ?? 0,
  cost_idr: rupiahNumber(call.cost()),
})

const twoDigits = (n: number): string => String(n).padStart(2, "0")

/** 3661.5 -> `01:01:01,500`; `mark` stands before the milliseconds. */
const clockTime = (seconds: number, mark: "," | "."): string => {
  const ms = Math.round(seconds * 1000)
  const [s, m, h] = [Math.floor(ms / 1000), Math.floor(ms / 60_000), Math.floor(ms / 3_600_000)]
  const rest = String(ms % 1000).padStart(3, "0")
  return `${twoDigits(h)}:${twoDigits(m % 60)}:${twoDigits(s % 60)}${mark}${rest}`
}

/** A blank line, or an arrow, would end a caption before its text does. */
const captionText = (text: string): string =>
  text
    .trim()
    .replace(/\s*\n\s*/g, "\n")
    .replaceAll("-->", "->")

const captions = ({ pieces }: Transcript, mark: "," | "."): readonly string[] =>
  pieces
    .filter(({ text, span }) => span && text.trim() !== "")
    .map(({ text, span }) => {
      const { start, end } = span!
      return `${clockTime(start, mark)} --> ${clockTime(end, mark)}\n${captionText(text)}\n`
    })

const toSegment = ({ text, span }: Piece, id: number): Segment => {
  const { start = 0, end = 0, temperature, avgLogprob, compressionRatio, noSpeechProb } = span ?? {}
  return {
    id,
    start,
    end,
    text,
    ...(temperature !== undefined && { temperature }),
    ...(avgLogprob !== undefined && { avg_logprob: avgLogprob }),
    ...(compressionRatio !== undefined && { compression_ratio: compressionRatio }),
    ...(noSpeechProb !== undefined && { no_speech_prob: noSpeechProb }),
  }
}

export const toVerbose = (transcript: Transcript, usage: TranscriptionUsage) => ({
  task: "transcribe",
  ...(transcript.language !== undefined && { language: transcript.language }),
  duration: usage.seconds,
  text: textOf(transcript),
  segments: transcript.pieces.map(toSegment),
  usage,
})

type TextFormat = Exclude<Format, "json" | "verbose_json">

export const textTypes: Readonly<Record<TextFormat, string>> = {
  text: "text/plain; charset=utf-8",
  srt: "application/x-subrip; charset=utf-8",
  vtt: "text/vtt; charset=utf-8",
}

export const toText = (transcript: Transcript, format: TextFormat): string => {
  if (format === "text") return `${textOf(transcript)}\n`
  if (format === "vtt") return ["WEBVTT\n", ...captions(transcript, ".")].join("\n")
  return captions(transcript, ",")
    .map((caption, at) => `${at + 1}\n${caption}`)
    .join("\n")
}
