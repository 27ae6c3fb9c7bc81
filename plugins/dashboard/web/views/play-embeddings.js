import { useMemo, useState } from "preact/hooks"
import { useText } from "../app.js"
import { count } from "../format.js"
import { html } from "../html.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { embeddingsBody, embeddingsCode, linesOf } from "../play-request.js"
import { similarities, toPlane } from "../vectors.js"
import { acceptedBy, dataUriOf } from "./attachments.js"
import { apiBase, Code, ModelField, Paid, useAnswer, useCall } from "./play-parts.js"
import { Nearest, PlaneMap, SimilarityTable } from "./play-similarity.js"

const imagesOf = (files) =>
  Promise.all([...files].map(async (file) => ({ name: file.name, uri: await dataUriOf(file) })))

/** An image of several megabytes is no text to read. */
const shortened = ({ name, uri }) => ({
  uri: `${uri.slice(0, uri.indexOf(",") + 1)}BASE64_OF_${name}`,
})

/** The API counts images behind the texts. */
const placedIn = (texts) => (problem) => {
  const [, at] = /^input\[(\d+)\]/.exec(problem.param ?? "") ?? []
  return at !== undefined && Number(at) >= texts
    ? Object.assign(problem, { param: "images" })
    : problem
}

const usedOf = (t, language, { data, usage }) =>
  [
    t("play.embed.vectors", {
      vectors: count(data.length, language),
      numbers: count(data[0].embedding.length, language),
    }),
    t("play.embed.tokens", { tokens: count(usage.prompt_tokens, language) }),
    usage.image_count > 0 && t("play.embed.images", { images: count(usage.image_count, language) }),
    usage.truncated_count > 0 &&
      t("play.embed.cut", { texts: count(usage.truncated_count, language) }),
  ]
    .filter(Boolean)
    .join(" · ")

/** A table and a map of more can't be read, and their time grows with the third power: 200 took 15 s. */
const mostCompared = 50

const Result = ({ labels: all, data }) => {
  const { t, language } = useText()
  const labels = all.slice(0, mostCompared)
  const vectors = useMemo(
    () => data.slice(0, mostCompared).map(({ embedding }) => embedding),
    [data],
  )
  const matrix = useMemo(() => similarities(vectors), [vectors])
  const plane = useMemo(() => toPlane(vectors), [vectors])
  if (vectors.length < 2) return html`<p class="hint">${t("play.embed.alone")}</p>`
  return html`
    ${data.length > mostCompared && html`<p class="hint">${t("play.embed.first", { count: count(mostCompared, language) })}</p>`}
    <h2>${t("play.embed.similar")}</h2>
    <${SimilarityTable} labels=${labels} matrix=${matrix} />
    <h2>${t("play.embed.map")}</h2>
    <${PlaneMap} labels=${labels} plane=${plane} />
    <${Nearest} labels=${labels} matrix=${matrix} />
  `
}

/** Texts and images as vectors: how alike they are. */
export const PlayEmbeddings = ({ models }) => {
  const { t, language } = useText()
  const call = useCall()
  const { answer, ask } = useAnswer()
  const [chosen, choose] = useState(undefined)
  const { modalities } = models.find(({ id }) => id === chosen) ?? models[0]
  const accept = acceptedBy({ modalities: modalities.filter((kind) => kind === "image") })
  const send = async (fields, form) => {
    const images = await imagesOf(form.elements.namedItem("images")?.files ?? [])
    const texts = linesOf(fields.input)
    const sent = {
      labels: [...texts, ...images.map(({ name }) => name)],
      body: embeddingsBody(fields, images.map(shortened)),
    }
    const body = embeddingsBody(fields, images)
    await ask(sent, call("/v1/embeddings", { body }), placedIn(texts.length))
  }
  const { sent, reply } = answer ?? {}
  return html`<section class="card" aria-label=${t("play.tab.embeddings")}>
    <${Form} onSubmit=${send} label=${t("play.tab.embeddings")} actions=${html`<${Submit}>${t("play.embed.send")}<//>`}>
      <div class="fields">
        <${ModelField} models=${models} onChange=${(event) => choose(event.target.value)} />
        <${Field} label=${t("play.embed.dimensions")} name="dimensions" type="number" step="any" inputmode="numeric" placeholder=${t("all")} />
      </div>
      <${Field} label=${t("play.embed.texts")} hint=${t("play.lines")} name="input" as="textarea" rows="6" maxlength="700000" defaultValue=${t("play.embed.example")} />
      ${accept && html`<${Field} label=${t("play.embed.files")} name="images" type="file" multiple accept=${accept} />`}
    <//>
    <${Paid} used=${reply && usedOf(t, language, reply)} cost=${reply?.usage.cost_idr} callId=${reply?.callId} />
    ${reply && html`<${Result} labels=${sent.labels} data=${reply.data} /><${Code} write=${() => embeddingsCode(apiBase(), sent.body)} />`}
  </section>`
}
