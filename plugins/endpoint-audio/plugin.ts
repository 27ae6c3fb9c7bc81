import { Schema } from "effect"
import { withDefault } from "../../core/decode.ts"
import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { makeTranscriptionEndpoint } from "./endpoint.ts"

export const plugin = definePlugin({
  name: "endpoint-audio",
  api: 1,
  about: "POST /v1/audio/transcriptions: what is said in a WAV or MP3 file.",
  settings: Schema.Struct({
    maxSeconds: withDefault(
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 86_400 })),
      1_800,
      "Seconds of audio that one file may have.",
    ),
  }),
  needs: [Tokens.catalogue],
  provides: [Tokens.endpoints],
  create: ({ maxSeconds }) => ({
    register: (container) => {
      const catalogue = resolve(container, Tokens.catalogue)
      provide(container, Tokens.endpoints, makeTranscriptionEndpoint({ catalogue, maxSeconds }))
    },
  }),
})
