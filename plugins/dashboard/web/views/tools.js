import { useState } from "preact/hooks"
import { useText } from "../app.js"
import { exampleTools, openCalls, prettyArguments, toolsOf } from "../chat-tools.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"

const choices = ["auto", "none", "required"]

const problemIn = (text) => {
  try {
    toolsOf(text)
  } catch (problem) {
    return problem
  }
}

/** The API names the place inside the tools; the field is all of them. */
const ofField = ({ code, param = "", message } = {}) =>
  /^tools\b/.test(param)
    ? { code, param: "tools", message: param === "tools" ? message : `${param}: ${message}` }
    : undefined

/** The tools that the model may call. `refusal`: what the API had against the last question. */
export const ToolSettings = ({ refusal }) => {
  const { t } = useText()
  const [text, write] = useState("")
  // complaints wait until the field is left: half a text is never JSON
  const [checked, check] = useState("")
  const problem = problemIn(checked) ?? ofField(refusal)
  const fill = () => {
    write(exampleTools)
    check(exampleTools)
  }
  return html`<details><summary>${t("play.tools")}</summary>
    <${Field} label=${t("play.tools.label")} hint=${t("play.tools.hint")} name="tools" as="textarea" rows="6" class="code" spellcheck=${false} maxlength="1000000"
      value=${text} problem=${problem} onInput=${(event) => write(event.target.value)} onChange=${(event) => check(event.target.value)} />
    <div class="actions"><${Button} onClick=${fill}>${t("play.tools.example")}<//></div>
    <${Field} label=${t("play.toolChoice")} hint=${t("play.toolChoice.hint")} name="tool_choice" as="select">${choices.map((choice) => html`<option key=${choice} value=${choice}>${t(`play.toolChoice.${choice}`)}</option>`)}<//>
  </details>`
}

const Call = ({ call, children }) => {
  const { t } = useText()
  return html`<li class="call">
    <p><span class="quiet">${t("play.call")}</span> <code>${call.name}</code></p>
    <pre class="snippet" tabindex="0" role="region" aria-label=${t("play.call.arguments", { name: call.name })}><code>${prettyArguments(call.arguments)}</code></pre>
    ${children}
  </li>`
}

/** The calls of an answer as cards; where they wait (`onResults`), each takes its result. */
export const ToolCalls = ({ calls = [], onResults }) => {
  const { t } = useText()
  if (calls.length === 0) return null
  const label = ({ name }, index) =>
    calls.length === 1
      ? t("play.result.of", { name })
      : `${t("play.result.of", { name })} (${index + 1})`
  const cards = html`<ul class="calls" aria-label=${t("play.calls")}>${calls.map(
    (call, index) => html`<${Call} key=${call.index} call=${call}>
      ${onResults && html`<${Field} label=${label(call, index)} name=${`result-${index}`} as="textarea" rows="2" class="code" required maxlength="1000000" />`}
    <//>`,
  )}</ul>`
  if (!onResults) return cards
  const send = (fields) => onResults(calls.map((_, index) => fields[`result-${index}`]))
  return html`<${Form} onSubmit=${send} label=${t("play.calls")} actions=${html`<${Submit}>${t("play.results.send")}<//>`}>${cards}<//>`
}

/** Whether results are due before the next question. */
export const areResultsDue = ({ busy, messages }) => !busy && openCalls(messages).length > 0
