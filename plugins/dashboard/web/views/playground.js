import { useEffect, useRef } from "preact/hooks"
import { useText } from "../app.js"
import { count, rupiah } from "../format.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { ProblemNotice } from "../parts/notice.js"
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
    <div class="words">${message.content}${isGrowing && html`<i class="caret" aria-hidden="true"></i>`}</div>
    ${message.isCut && html`<p class="quiet">${t("play.stopped")}</p>`}
    <${ProblemNotice} problem=${message.problem} />
    <${Bill} ...${message} />
  </li>`
}

const Settings = ({ models }) => {
  const { t } = useText()
  return html`<div class="fields">
    <${Field} label=${t("model")} as="select" name="model" required>${models.map(({ id }) => html`<option key=${id} value=${id}>${id}</option>`)}<//>
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
  const send = async ({ message, model, system, temperature, max_tokens }, form) => {
    form.elements.namedItem("message").value = ""
    await talk.ask({ model, system, temperature, maxTokens: max_tokens }, message)
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
        <details class="settings" open><summary>${t("play.settings")}</summary><${Settings} models=${chatModels} /></details>
      <//>
    </section>
  `
}
