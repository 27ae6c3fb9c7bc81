import { useEffect, useRef, useState } from "preact/hooks"
import { useText } from "../app.js"
import { count, rupiah } from "../format.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { ProblemNotice } from "../parts/notice.js"
import { Attachments, acceptedBy, attachmentsOf } from "./attachments.js"
import { useConversation } from "./conversation.js"

const Bill = ({ usage, callId }) => {
  const { t, language } = useText()
  if (!usage) return null
  const tokens = t("play.tokens", {
    input: count(usage.prompt_tokens, language),
    output: count(usage.completion_tokens, language),
  })
  return html`<p class="bill quiet">${tokens} · <b>${rupiah(usage.cost_idr ?? 0)}</b>${callId && html` · <code>${callId}</code>`}</p>`
}

const Message = ({ message, isGrowing }) => {
  const { t } = useText()
  return html`<li class=${`message ${message.role}`} aria-busy=${isGrowing || undefined}>
    <p class="speaker quiet">${message.role === "user" ? t("play.you") : t("play.model")}</p>
    <${Attachments} files=${message.files} />
    <div class="words">${message.content}${isGrowing && html`<i class="caret" aria-hidden="true"></i>`}</div>
    ${message.isCut && html`<p class="quiet">${t("play.stopped")}</p>`}
    <${ProblemNotice} problem=${message.problem} />
    <${Bill} ...${message} />
  </li>`
}

const Settings = ({ models, onModel }) => {
  const { t } = useText()
  return html`<div class="fields">
    <${Field} label=${t("model")} as="select" name="model" required onChange=${(event) => onModel(event.target.value)}>${models.map(({ id }) => html`<option key=${id} value=${id}>${id}</option>`)}<//>
    <${Field} label=${t("play.temperature")} name="temperature" type="number" step="any" inputmode="decimal" placeholder="1" />
    <${Field} label=${t("play.maxTokens")} name="max_tokens" type="number" step="any" inputmode="numeric" placeholder=${t("limit.default")} />
  </div>
  <${Field} label=${t("play.system")} name="system" as="textarea" rows="2" />`
}

/** Enter sends; with Shift it is a new line. While an input method composes a word, Enter belongs to it. */
const sendOnEnter = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
  event.preventDefault()
  event.target.form.requestSubmit()
}

const Talk = ({ talk }) => {
  const { t } = useText()
  const end = useRef()
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [talk.messages])
  const last = talk.messages.at(-1)
  const finished = !talk.busy && last?.role === "assistant" ? last.content : ""
  return html`
    <ol class="talk" aria-label=${t("play.talk")}>
      ${talk.messages.map((message, index) => html`<${Message} key=${index} message=${message} isGrowing=${talk.busy && message === last} />`)}
    </ol>
    <div ref=${end}></div>
    <p class="unseen" role="status">${finished}</p>
  `
}

export const Playground = ({ models: { models } }) => {
  const { t } = useText()
  const talk = useConversation()
  useEffect(() => talk.stop, [])
  const chatModels = models.filter(({ capabilities }) => capabilities.includes("chat"))
  const [chosen, choose] = useState(undefined)
  const accept = acceptedBy(chatModels.find(({ id }) => id === chosen) ?? chatModels[0])
  const send = async ({ message, model, system, temperature, max_tokens }, form) => {
    const input = form.elements.namedItem("files")
    const files = await attachmentsOf(input?.files ?? [])
    form.elements.namedItem("message").value = ""
    if (input) input.value = ""
    await talk.ask({ model, system, temperature, maxTokens: max_tokens }, { text: message, files })
    form.elements.namedItem("message").focus()
  }
  const actions = html`<${Submit}>${t("play.send")}<//>
    ${talk.busy && html`<${Button} look="danger" onClick=${talk.stop}>${t("play.stop")}<//>`}
    ${!talk.busy && talk.messages.length > 0 && html`<${Button} onClick=${talk.clear}>${t("play.clear")}<//>`}`
  return html`
    <h1>${t("nav.playground")}</h1>
    <section class="card">
      <p class="hint">${t("play.hint")}</p>
      <${Talk} talk=${talk} />
      <${Form} onSubmit=${send} label=${t("nav.playground")} actions=${actions}>
        <${Field} label=${t("play.message")} name="message" as="textarea" rows="3" required onKeyDown=${sendOnEnter} />
        ${accept && html`<${Field} label=${t("play.attach")} name="files" type="file" multiple accept=${accept} />`}
        <details class="settings" open><summary>${t("play.settings")}</summary><${Settings} models=${chatModels} onModel=${choose} /></details>
      <//>
    </section>
  `
}
