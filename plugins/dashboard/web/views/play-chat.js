import { useEffect, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { requestOf, snippets } from "../chat-request.js"
import { isSaid, toolsOf } from "../chat-tools.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Check, Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { Notice, ProblemNotice } from "../parts/notice.js"
import { checkSchema, remarks } from "../schema-check.js"
import { acceptedBy, attachmentsOf } from "./attachments.js"
import { useConversation } from "./conversation.js"
import { apiBase, Code } from "./play-parts.js"
import { Talk } from "./talk.js"
import { areResultsDue, ToolSettings } from "./tools.js"

/** Small models, most of those that say nothing, answer best near 0. */
const usualTemperature = 0.2

/** Begins with what the model answers best with; what is typed stays when another model is chosen. */
const Temperature = ({ model }) => {
  const { t } = useText()
  const [typed, type] = useState(undefined)
  const { temperature = usualTemperature, source } = model.recommended_sampling ?? {}
  const hint = source
    ? t(`play.temperature.${source}`, { temperature })
    : t("play.temperature.hint")
  return html`<${Field} label=${t("play.temperature")} hint=${hint} name="temperature" type="number" step="any" inputmode="decimal" value=${typed ?? temperature} onInput=${(event) => type(event.target.value)} />`
}

const Settings = ({ models, model, schema, onModel, refusal }) => {
  const { t } = useText()
  return html`<div class="fields">
    <${Field} label=${t("model")} as="select" name="model" required onChange=${(event) => onModel(event.target.value)}>${models.map(({ id }) => html`<option key=${id} value=${id} selected=${id === model.id}>${id}</option>`)}<//>
    <${Temperature} model=${model} />
    <${Field} label=${t("play.maxTokens")} name="max_tokens" type="number" step="any" inputmode="numeric" placeholder=${t("limit.default")} />
  </div>
  ${model.capabilities.includes("thinking") && html`<${Check} label=${t("play.think")} hint=${t("play.think.hint")} name="thinking" />`}
  <${Field} label=${t("play.system")} name="system" as="textarea" rows="2" />
  <details open=${schema !== undefined}><summary>${t("play.schema")}</summary><${Field} label=${t("play.schema.label")} hint=${t("play.schema.hint")} name="schema" as="textarea" rows="4" class="code" spellcheck=${false} defaultValue=${schema} />
    <${SchemaCheck} text=${() => document.querySelector("textarea[name=schema]").value} /></details>
  <${ToolSettings} refusal=${refusal} />`
}

/** Enter sends; with Shift it is a new line. While an input method composes a word, Enter belongs to it. */
const sendOnEnter = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
  event.preventDefault()
  event.target.form.requestSubmit()
}

/** The present conversation as programs, by their languages; none while a field holds what can't be sent. */
const codeOf = (settings, messages) => {
  try {
    const body = requestOf(settings, messages.filter(isSaid))
    const programs = Object.entries(snippets).map(([name, write]) => [name, write(apiBase(), body)])
    return Object.fromEntries(programs)
  } catch {
    return {}
  }
}

/** Earlier conversations of this browser. */
const Earlier = ({ talk }) => {
  const { t } = useText()
  if (talk.talks.length === 0) return null
  return html`<details>
    <summary>${t("play.earlier")}</summary>
    <ul class="talks">${talk.talks.map(
      (one) => html`<li key=${one.id}>
        <${Button} look="link" aria-current=${one.id === talk.current || undefined} onClick=${() => talk.open(one)}>${one.title}<//>
        <${Button} look="link" aria-label=${t("play.forget.of", { title: one.title })} onClick=${() => talk.remove(one.id)}>${t("play.forget")}<//>
      </li>`,
    )}</ul>
  </details>`
}

/** What the server keeps of the schema, keyword by keyword, before it is used. */
const SchemaCheck = ({ text }) => {
  const { t } = useText()
  const { v1 } = useApp()
  const [verdict, show] = useState(undefined)
  const [problem, refuse] = useState(undefined)
  const check = async () => {
    refuse(undefined)
    show(undefined)
    await checkSchema(v1, text()).then(show, refuse)
  }
  const lost = verdict ? remarks(verdict) : []
  return html`<div>
    <${Button} onClick=${check}>${t("play.schema.check")}<//>
    <${ProblemNotice} problem=${problem} />
    ${
      verdict &&
      html`<${Notice} kind=${verdict.accepted ? "good" : "bad"}>${t(verdict.accepted ? "play.schema.good" : "play.schema.bad")}${verdict.error && ` ${verdict.error}`}
      ${lost.length > 0 && html`<ul>${lost.map((one) => html`<li key=${one.path + one.keyword}><code>${one.path} ${one.keyword}</code>: ${one.verdict}${one.reason && `, ${one.reason}`}</li>`)}</ul>`}<//>`
    }
  </div>`
}

/** Throws what is wrong with the tools, where the field can be seen. */
const checkTools = (tools, form) => {
  try {
    toolsOf(tools)
  } catch (problem) {
    for (let at = form.elements.namedItem("tools"); at; at = at.parentElement)
      if (at.open === false) at.open = true
    throw problem
  }
}

/** `models`: those that chat. */
export const PlayChat = ({ models: chatModels }) => {
  const { t } = useText()
  const talk = useConversation()
  useEffect(() => talk.leave, [])
  const { carried } = useApp()
  const [brought] = useState(() => carried.get() ?? {})
  useEffect(() => carried.set(undefined), [])
  const [chosen, choose] = useState(brought.model)
  const model = chatModels.find(({ id }) => id === chosen) ?? chatModels[0]
  const accept = acceptedBy(model)
  const form = () => document.querySelector("select[name=model]").form
  const settings = () => {
    const { max_tokens, tool_choice, schema, ...fields } = Object.fromEntries(new FormData(form()))
    return { ...fields, maxTokens: max_tokens, toolChoice: tool_choice, schema: schema?.trim() }
  }
  const isDue = areResultsDue(talk)
  const send = async ({ message, tools }, form) => {
    if (isDue) return
    checkTools(tools, form)
    const input = form.elements.namedItem("files")
    const files = await attachmentsOf(input?.files ?? [])
    form.elements.namedItem("message").value = ""
    if (input) input.value = ""
    await talk.ask(settings(), { text: message, files })
    form.elements.namedItem("message")?.focus()
  }
  const results = async (texts) => {
    await talk.giveResults(settings(), texts)
    form().elements.namedItem("message")?.focus()
  }
  const actions = html`${!isDue && html`<${Submit}>${t("play.send")}<//>`}
    ${talk.busy && html`<${Button} look="danger" onClick=${talk.stop}>${t("play.stop")}<//>`}
    ${!talk.busy && talk.messages.length > 0 && html`<${Button} onClick=${() => talk.open(undefined)}>${t("play.clear")}<//>`}`
  return html`
    <section class="card" aria-label=${t("play.tab.chat")}>
      <${Earlier} talk=${talk} />
      <${Talk} talk=${talk} onAgain=${() => talk.again(settings())} onResults=${results} />
      <${Form} onSubmit=${send} label=${t("nav.playground")} actions=${actions}>
        ${isDue ? html`<p class="hint">${t("play.results.due")}</p>` : html`<${Field} label=${t("play.message")} name="message" as="textarea" rows="3" required onKeyDown=${sendOnEnter} />`}
        ${accept && !isDue && html`<${Field} label=${t("play.attach")} name="files" type="file" multiple accept=${accept} />`}
        <details class="settings" open><summary>${t("play.settings")}</summary><${Settings} models=${chatModels} model=${model} schema=${brought.schema} onModel=${choose} refusal=${talk.messages.at(-1)?.problem} /></details>
      <//>
      ${talk.messages.length > 0 && html`<${Code} write=${() => codeOf(settings(), talk.messages)} />`}
    </section>
  `
}
