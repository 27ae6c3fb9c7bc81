import { resolve as resolvePath } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { PluginError } from "../../core/errors.ts"
import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { makeImageSafety } from "./image-safety.ts"
import { makeClassifier } from "./picture/classifier.ts"
import { Settings } from "./settings.ts"
import { parseTerm, type Term } from "./words/lists.ts"
import { makePromptFilter } from "./words/prompt-filter.ts"
import { readLists } from "./words/read-lists.ts"

/** The compiled copy of this module has no lists beside it. */
const ownLists = fileURLToPath(
  new URL(
    import.meta.url.endsWith(".ts") ? "./lists/" : "../../../plugins/safety-images/lists/",
    import.meta.url,
  ),
)

// the settings have refused what is no term
const termsOf = (lines: readonly string[]): readonly Term[] =>
  lines.map(parseTerm).filter((term) => typeof term !== "string")

const openFilter = ({ lists: folder, extra, allow }: Settings) =>
  Effect.map(
    Effect.tryPromise({
      try: () => readLists(folder === "" ? ownLists : resolvePath(folder)),
      catch: (cause) =>
        new PluginError({
          plugin: "safety-images",
          message: cause instanceof Error ? cause.message : String(cause),
          cause,
        }),
    }),
    (lists) =>
      makePromptFilter(
        {
          ...lists,
          minors: [...lists.minors, ...termsOf(extra.minors)],
          public_figures: [...lists.public_figures, ...termsOf(extra.public_figures)],
          nsfw: [...lists.nsfw, ...termsOf(extra.nsfw)],
        },
        termsOf(allow),
      ),
  )

export const plugin = definePlugin<Settings>({
  name: "safety-images",
  api: 1,
  about: "Refuses prompts by word lists, and pictures by a classifier.",
  settings: Settings,
  needs: [Tokens.workers, Tokens.metrics],
  provides: [Tokens.imageSafety],
  create: (settings) => ({
    start: (container) =>
      Effect.gen(function* () {
        const filter = yield* openFilter(settings)
        const classifier = yield* makeClassifier(resolve(container, Tokens.workers))
        const metrics = resolve(container, Tokens.metrics)
        provide(
          container,
          Tokens.imageSafety,
          makeImageSafety({ filter, classifier, metrics }, settings),
        )
      }),
  }),
})
