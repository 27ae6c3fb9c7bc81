/** `seconds` is the length of the audio by its file, whole and at least 1: what is charged. */
export interface TranscribeRequest {
  /** A whole file of this format. */
  readonly audio: Uint8Array
  readonly format: "wav" | "mp3"
  readonly seconds: number
  /** ISO 639-1; absent: the model finds it out. */
  readonly language?: string
  /** Text in whose style the transcript goes on. */
  readonly prompt?: string
  /** 0 is greedy. */
  readonly temperature: number
  /** Each text comes with its times. */
  readonly segments: boolean
}

/** Times in seconds from the start of the audio; the numbers are those that Whisper reports. */
export interface TranscriptSpan {
  readonly start: number
  readonly end: number
  readonly temperature?: number
  readonly avgLogprob?: number
  readonly compressionRatio?: number
  readonly noSpeechProb?: number
}

/** The texts together are the transcript. `finish` comes once, last. */
export type TranscribeEvent =
  | { readonly type: "text"; readonly text: string; readonly span?: TranscriptSpan }
  | { readonly type: "finish"; readonly language?: string }
