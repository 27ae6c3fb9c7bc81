import { useState } from "preact/hooks"
import { Problem } from "../api.js"
import { useText } from "../app.js"
import { fixed } from "../format.js"
import { html } from "../html.js"
import { imageCode } from "../image-code.js"
import { imageBodies, seedOf } from "../image-request.js"
import { Amount } from "../parts/amount.js"
import { Button } from "../parts/button.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { ProblemNotice } from "../parts/notice.js"
import { acceptedBy, dataUriOf } from "./attachments.js"
import { Looks, lookName, plain } from "./looks.js"
import { usePictures } from "./pictures.js"
import { apiBase, Code, ModelField, ofWholeField } from "./play-parts.js"

const mostFiles = 5
const sizes = ["512x512", "768x768", "768x512", "512x768"]

const Settings = ({ isEdit }) => {
  const { t } = useText()
  return html`<div class="fields">
    <${Field} label=${t("play.image.size")} hint=${t(isEdit ? "play.image.size.edit" : "play.image.size.hint")} name="size" list="sizes" maxlength="20" placeholder=${t("limit.default")} />
    <datalist id="sizes">${sizes.map((size) => html`<option key=${size} value=${size}></option>`)}</datalist>
    <${Field} label=${t("play.image.steps")} hint=${t("play.image.steps.hint")} name="num_steps" type="number" step="any" inputmode="numeric" placeholder=${t("limit.default")} />
    <${Field} label=${t("play.image.seed")} hint=${t("play.image.seed.hint")} name="seed" type="number" step="any" inputmode="numeric" placeholder=${t("play.image.seed.random")} />
    ${isEdit && html`<${Field} label=${t("play.image.change")} hint=${t("play.image.change.hint")} name="strength" type="number" step="any" inputmode="decimal" placeholder="0.75" />`}
  </div>`
}

const Facts = ({ picture, name }) => {
  const { t, language } = useText()
  const { usage, ms, size, address, callId, look } = picture
  return html`<p class="bill quiet">${size} · ${t("play.image.seeded", { seed: look.seed })} · ${t("play.image.took", { seconds: fixed(ms / 1000, language, 1) })} · <b><${Amount} value=${usage.cost_idr} /></b>${callId && html` · <code>${callId}</code>`}</p>
    <p><a href=${address} download=${`${name}-${look.seed}.png`} aria-label=${t("play.image.save.of", { name })}>${t("file.download")}</a></p>`
}

const Picture = ({ picture }) => {
  const { t } = useText()
  const { look, state, address, problem } = picture
  const name = lookName(t, look)
  return html`<li class="picture" aria-busy=${state === "running" || undefined}>
    <figure>
      <figcaption>${name}</figcaption>
      <div class=${`canvas-of ${state}`}>${address && html`<img src=${address} alt=${t(state === "done" ? "play.image.alt" : "play.image.alt.preview", { name })} />`}</div>
    </figure>
    ${state !== "done" && state !== "failed" && html`<p class="quiet">${t(`play.image.state.${state}`)}</p>`}
    <${ProblemNotice} problem=${problem} />
    ${state === "done" && html`<${Facts} picture=${picture} name=${name} />`}
  </li>`
}

const filesIn = (form) => {
  const files = [...(form.elements.namedItem("images")?.files ?? [])]
  if (files.length > mostFiles) throw new Problem({ code: "images_too_many", param: "images" })
  return files
}

/** Said to screen readers when the last picture is there. */
const Made = ({ pictures, busy }) => {
  const { t } = useText()
  const done = pictures.filter(({ state }) => state === "done").length
  return html`<p class="unseen" role="status">${!busy && done > 0 && t("play.image.made", { count: done })}</p>`
}

const Price = ({ model, count }) => {
  const { t } = useText()
  const each = model.pricing.image_idr
  if (!each) return null
  return html`<p class="hint">${t("play.image.price", { count })} <${Amount} value=${each * count} /></p>`
}

/** Pictures from a text, or from a text and pictures; side by side with the model's LoRAs. */
export const PlayImages = ({ models }) => {
  const { t } = useText()
  const { pictures, busy, make, stop } = usePictures()
  const [chosen, choose] = useState(undefined)
  const [looks, setLooks] = useState([plain])
  const [isEdit, setEdit] = useState(false)
  const [sent, setSent] = useState(undefined)
  const model = models.find(({ id }) => id === chosen) ?? models[0]
  const edits = model.capabilities.includes("image_editing")
  const { loras = [] } = model
  const wanted = looks.map((look) => (loras.includes(look.lora) ? look : { ...look, lora: "" }))
  const send = async ({ seed: text, ...fields }, form) => {
    const files = filesIn(form)
    const images = await Promise.all(files.map(dataUriOf))
    const seed = seedOf(text)
    const bodies = imageBodies(fields, { looks: wanted, images, seed })
    setSent({
      bodies: bodies.map(({ images: _, ...body }) => body),
      names: files.map(({ name }) => name),
    })
    const path = images.length > 0 ? "/v1/images/edits" : "/v1/images/generations"
    await make(
      path,
      bodies,
      wanted.map((look) => ({ ...look, seed })),
    ).catch((error) => {
      throw ofWholeField(error)
    })
  }
  const actions = html`<${Submit}>${t(wanted.length > 1 ? "play.image.sendAll" : "play.image.send", { count: wanted.length })}<//>
    ${busy && html`<${Button} look="danger" onClick=${stop}>${t("play.stop")}<//>`}`
  return html`<section class="card" aria-label=${t("play.tab.images")}>
    <${Form} onSubmit=${send} label=${t("play.tab.images")} actions=${actions}>
      <${ModelField} models=${models} onChange=${(event) => choose(event.target.value)} />
      <${Field} label=${t("play.image.prompt")} hint=${t("play.image.prompt.hint")} name="prompt" as="textarea" rows="2" maxlength="2000" required defaultValue=${t("play.image.example")} />
      ${edits && html`<${Field} label=${t("play.image.files")} hint=${t("play.image.files.hint")} name="images" type="file" multiple accept=${acceptedBy({ modalities: ["image"] })} onChange=${(event) => setEdit(event.target.files.length > 0)} />`}
      <${Looks} looks=${wanted} loras=${loras} onChange=${setLooks} />
      <details class="settings" open><summary>${t("play.settings")}</summary><${Settings} isEdit=${edits && isEdit} /></details>
      <${Price} model=${model} count=${wanted.length} />
    <//>
    ${pictures.length > 0 ? html`<ul class="pictures" aria-label=${t("play.image.pictures")}>${pictures.map((picture, at) => html`<${Picture} key=${at} picture=${picture} />`)}</ul>` : html`<p class="hint">${t("play.image.none")}</p>`}
    <${Made} pictures=${pictures} busy=${busy} />
    ${sent && pictures.length > 0 && html`<${Code} write=${() => imageCode(apiBase(), sent.bodies, sent.names)} />`}
  </section>`
}
