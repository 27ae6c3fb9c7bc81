import { Effect } from "effect"
import type { ImageSafety } from "../../core/ports/image.ts"
import type { Metrics } from "../../core/services/metrics.ts"
import { isExplicit } from "./picture/classes.ts"
import type { Classifier } from "./picture/classifier.ts"
import type { Settings } from "./settings.ts"
import type { Category, PromptFilter } from "./words/prompt-filter.ts"

export interface ImageSafetyDeps {
  readonly filter: PromptFilter
  readonly classifier: Classifier
  readonly metrics: Metrics
}

/** The port over both filters: modes of the categories decide what their findings mean. */
export const makeImageSafety = (
  { filter, classifier, metrics }: ImageSafetyDeps,
  { categories, thresholds }: Settings,
): ImageSafety => {
  const reports = metrics.counter(
    "rakit_safety_reports_total",
    "Prompts and pictures of categories that are reported, not refused.",
    ["stage", "category"],
  )
  const modes = { minors: "refuse", ...categories } as const
  const judge = (stage: "prompt" | "picture", found: readonly Category[]): Category | undefined => {
    for (const category of found)
      if (modes[category] === "report") reports.add(1, { stage, category })
    return found.find((category) => modes[category] === "refuse")
  }
  return {
    prompt: (text) => Effect.sync(() => judge("prompt", filter.categoriesOf(text))),
    picture: (bytes) =>
      modes.nsfw === "off"
        ? Effect.succeed(undefined)
        : Effect.map(classifier.classify(bytes), (classes) =>
            judge("picture", isExplicit(classes, thresholds) ? ["nsfw"] : []),
          ),
  }
}
