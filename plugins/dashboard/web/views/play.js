import { Problem } from "../api.js"
import { useText } from "../app.js"
import { html } from "../html.js"
import { Loading, Notice, ProblemNotice } from "../parts/notice.js"
import { usePart } from "../route.js"
import { PlayChat } from "./play-chat.js"
import { PlayEmbeddings } from "./play-embeddings.js"
import { PlayImages } from "./play-images.js"
import { PlayRerank } from "./play-rerank.js"
import { PlayTranscribe } from "./play-transcribe.js"

/** One view a tab; it is there where a model has the capability, and gets the models that have it. */
const tabs = [
  { name: "chat", capability: "chat", view: PlayChat },
  { name: "images", capability: "image_generation", view: PlayImages },
  { name: "embeddings", capability: "embeddings", view: PlayEmbeddings },
  { name: "rerank", capability: "rerank", view: PlayRerank },
  { name: "transcribe", capability: "transcription", view: PlayTranscribe },
]

export const able = (models, capability) =>
  models.filter(({ capabilities }) => capabilities.includes(capability))

const Tabs = ({ offered, chosen }) => {
  const { t } = useText()
  return html`<nav class="tabs" aria-label=${t("play.tabs")}>
    ${offered.map(({ name }) => html`<a key=${name} href=${`#playground/${name}`} aria-current=${name === chosen ? "page" : undefined}>${t(`play.tab.${name}`)}</a>`)}
  </nav>`
}

const Chosen = ({ models, offered }) => {
  const part = usePart()
  const { name, capability, view: View } = offered.find((tab) => tab.name === part) ?? offered[0]
  return html`
    ${offered.length > 1 && html`<${Tabs} offered=${offered} chosen=${name} />`}
    <${View} key=${name} models=${able(models, capability)} />`
}

const Nothing = ({ status }) => {
  const { t } = useText()
  if (status === undefined) return html`<${Loading} />`
  return status === "unreachable"
    ? html`<${ProblemNotice} problem=${new Problem({})} />`
    : html`<${Notice}>${t("play.none")}<//>`
}

export const offeredTabs = (models) =>
  tabs.filter(({ capability }) => able(models, capability).length > 0)

/** The playground: a tab for each thing that the deployment's models do. */
export const Playground = ({ models: { status, models } }) => {
  const { t } = useText()
  const offered = offeredTabs(models)
  return html`
    <h1>${t("nav.playground")}</h1>
    <p class="hint">${t("play.hint")}</p>
    ${offered.length > 0 ? html`<${Chosen} models=${models} offered=${offered} />` : html`<${Nothing} status=${status} />`}
  `
}
