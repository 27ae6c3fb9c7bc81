import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { count } from "../format.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { Notice } from "../parts/notice.js"
import { annotated, checkSchema, examples, remarks } from "../schema-check.js"
import { able } from "./play.js"

const mostCharacters = 524_288

const Remark = ({ remark: { path, verdict, reason } }) => {
  const { t } = useText()
  return html`<p class=${`remark ${verdict}`}><b>${t(`schema.${verdict}`)}</b> <code>${path || "/"}</code>${reason && `: ${reason}`}</p>`
}

/** The text with what the server has to say, beside the lines that it is about. */
const Annotated = ({ text, report }) => {
  const { t } = useText()
  return html`<ol class="lines" tabindex="0" aria-label=${t("schema.text")}>${annotated(
    text,
    remarks(report),
  ).map(
    (
      line,
    ) => html`<li key=${line.number} value=${line.number} class=${line.remarks.some(({ verdict }) => verdict === "refused") ? "refused" : undefined}>
      <code>${line.text || " "}</code>
      ${line.remarks.map((remark, at) => html`<${Remark} key=${at} remark=${remark} />`)}
    </li>`,
  )}</ol>`
}

const Counts = ({ report: { keywords, compile_ms: ms } }) => {
  const { t, language } = useText()
  const of = (verdict) =>
    count(keywords.filter((keyword) => keyword.verdict === verdict).length, language)
  const counts = {
    enforced: of("enforced"),
    annotation: of("annotation"),
    refused: of("refused"),
    ms: count(Math.ceil(ms ?? 0), language),
  }
  return html`<p class="quiet">${t("schema.counts", counts)}</p>`
}

const verdictOf = ({ accepted, isInvalid }) => {
  if (isInvalid) return "schema.invalid"
  return accepted ? "play.schema.good" : "play.schema.bad"
}

const Verdict = ({ checked: { text, model, report } }) => {
  const { t } = useText()
  const { carried } = useApp()
  const { accepted, error, isInvalid } = report
  return html`<section class="card" aria-label=${t("schema.verdict")}>
    <${Notice} kind=${accepted ? "good" : "bad"}>${t(verdictOf(report))}${error && ` ${error}`}<//>
    ${!isInvalid && html`<${Counts} report=${report} />`}
    <${Annotated} text=${text} report=${report} />
    ${accepted && model && html`<p><a href="#playground/chat" onClick=${() => carried.set({ schema: text, model })}>${t("schema.try")}</a></p>`}
  </section>`
}

/** What structured output keeps of a JSON Schema, at its place in the text. */
export const Schemas = ({ models: { status, models } }) => {
  const { t } = useText()
  const { v1 } = useApp()
  const [text, write] = useState("")
  const [checked, show] = useState(undefined)
  const keeping = able(able(models, "chat"), "structured_output")
  const check = async ({ model }) => {
    show(undefined)
    show({ text, model, report: await checkSchema(v1, text) })
  }
  return html`
    <h1>${t("nav.schemas")}</h1>
    <p class="quiet">${t("schema.what")}</p>
    ${status && status !== "unreachable" && keeping.length === 0 && html`<${Notice}>${t("schema.noModel")}<//>`}
    <section class="card" aria-label=${t("schema.yours")}>
      <${Form} onSubmit=${check} label=${t("schema.yours")} actions=${html`<${Submit}>${t("play.schema.check")}<//>`}>
        ${keeping.length > 0 && html`<${Field} label=${t("model")} as="select" name="model">${keeping.map(({ id }) => html`<option key=${id} value=${id}>${id}</option>`)}<//>`}
        <${Field} label=${t("play.schema.label")} hint=${t("schema.limits")} name="schema" as="textarea" rows="14" class="code" spellcheck=${false} required maxlength=${mostCharacters} value=${text} onInput=${(event) => write(event.target.value)} />
        ${!text && html`<p class="quiet">${t("schema.none")}</p>`}
        <div class="actions">${Object.entries(examples).map(([name, example]) => html`<${Button} key=${name} look="link" onClick=${() => write(example)}>${t(`schema.example.${name}`)}<//>`)}</div>
      <//>
    </section>
    ${checked && html`<${Verdict} checked=${checked} />`}
  `
}
