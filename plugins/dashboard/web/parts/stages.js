import { useText } from "../app.js"
import { count, duration } from "../format.js"
import { html } from "../html.js"
import { hasWords } from "../language.js"

/** Colours by what a stage is: waiting, reading, writing, preparing media; all else is overhead. */
const colours = {
  queue: 2,
  prefill: 1,
  encode: 1,
  search: 1,
  decode: 3,
  denoise: 3,
  rerank: 3,
  images: 4,
  audio: 4,
  png: 4,
  safety: 4,
  tokenize: 5,
}

/** The stages of engines; where there is none, the model is another server's. */
const ofEngines = ["queue", "prefill", "decode", "encode", "denoise"]

/**
 * Returns what no stage measured: of an engine that reports none, the time to the first token and the
 * time after it; else `other`.
 */
const restOf = (stages, sum, totalMs, firstMs) => {
  const rest = totalMs - sum
  if (rest <= 0) return []
  if (firstMs === null || firstMs < sum || ofEngines.some((stage) => stage in stages))
    return [{ stage: "other", ms: rest, colour: 0 }]
  return [
    { stage: "first", ms: firstMs - sum, colour: 1 },
    { stage: "after", ms: Math.max(0, totalMs - firstMs), colour: 3 },
  ]
}

/** Returns the parts of a call's time, in order. Tokenizing is a part of planning, which is shown without it. */
export const partsOf = ({ stages_ms: stages, duration_ms: totalMs, first_token_ms: firstMs }) => {
  const { tokenize = 0 } = stages
  const parts = Object.entries(stages).map(([stage, ms]) => ({
    stage,
    ms: stage === "plan" ? Math.max(0, ms - tokenize) : ms,
    colour: colours[stage] ?? 6,
  }))
  const sum = parts.reduce((all, { ms }) => all + ms, 0)
  return [...parts, ...restOf(stages, sum, totalMs, firstMs)]
}

/** The parts of a call's time as one bar; its table has the same for those who don't see it. */
export const StageBar = ({ call }) => {
  const parts = partsOf(call)
  const all = parts.reduce((sum, { ms }) => sum + ms, 0) || 1
  let at = 0
  return html`<svg class="stages" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
    ${parts.map(({ stage, ms, colour }) => {
      const x = at
      at += (ms / all) * 100
      return html`<rect key=${stage} class=${`part-${colour}`} x=${x} y="0" width=${at - x} height="8" />`
    })}
  </svg>`
}

const nameOf = (t, stage) => (hasWords(`stage.${stage}`) ? t(`stage.${stage}`) : stage)

/** The same in words: each stage with its time and its share. */
export const StageList = ({ call }) => {
  const { t, language } = useText()
  const parts = partsOf(call)
  const share = (ms) => `${count(Math.round((ms / (call.duration_ms || 1)) * 100), language)} %`
  return html`<ul class="stage-list" aria-label=${t("call.stages")}>
    ${parts.map(({ stage, ms, colour }) => html`<li key=${stage}><i class=${`swatch part-${colour}`}></i><span>${nameOf(t, stage)} ${stage in call.stages_ms && html`<code class="quiet">${stage}</code>`}</span><b>${duration(ms, language)}</b><span class="quiet share">${share(ms)}</span></li>`)}
  </ul>`
}
