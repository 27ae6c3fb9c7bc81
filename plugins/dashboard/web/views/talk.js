import { useEffect, useRef, useState } from "preact/hooks"
import { useText } from "../app.js"
import { count } from "../format.js"
import { html } from "../html.js"
import { Amount } from "../parts/amount.js"
import { Button } from "../parts/button.js"
import { Markdown } from "../parts/markdown.js"
import { ProblemNotice } from "../parts/notice.js"
import { Attachments } from "./attachments.js"
import { areResultsDue, ToolCalls } from "./tools.js"

const Bill = ({ usage, callId }) => {
  const { t, language } = useText()
  if (!usage) return null
  const tokens = t("play.tokens", {
    input: count(usage.prompt_tokens, language),
    output: count(usage.completion_tokens, language),
  })
  return html`<p class="bill quiet">${tokens} · <b><${Amount} value=${usage.cost_idr ?? 0} /></b>${callId && html` · <code>${callId}</code>`}</p>`
}

const CopyText = ({ text }) => {
  const { t } = useText()
  const [said, say] = useState("")
  const copy = async () => {
    try {
      // without HTTPS pages have no clipboard
      await navigator.clipboard.writeText(text)
      say(t("copy.done"))
    } catch {
      say(t("copy.cant"))
    }
  }
  return html`<${Button} look="link" onClick=${copy}>${t("copy")}<//><span role="status" class="quiet">${said}</span>`
}

const speakerOf = (t, { role, name }) => {
  if (role === "tool") return t("play.result.of", { name })
  return t(role === "assistant" ? "play.model" : "play.you")
}

/** Why the answer ended, unless it was complete. */
const Ending = ({ finish }) => {
  const { t } = useText()
  if (!finish || finish === "stop") return null
  return html`<p class="quiet">${t("play.finish")} <code>${finish}</code></p>`
}

const Message = ({ message, isGrowing, onAgain, onResults }) => {
  const { t } = useText()
  const { role, content, thoughts, finish } = message
  const isAnswer = role === "assistant"
  return html`<li class=${`message ${role}`} aria-busy=${isGrowing || undefined}>
    <p class="speaker quiet">${speakerOf(t, message)}</p>
    <${Attachments} files=${message.files} />
    ${thoughts && html`<details><summary>${t("play.thoughts")}</summary><div class="words quiet">${thoughts}</div></details>`}
    ${isAnswer && !isGrowing && content ? html`<${Markdown} text=${content} />` : html`<div class="words">${content}${isGrowing && html`<i class="caret" aria-hidden="true"></i>`}</div>`}
    <${ToolCalls} calls=${message.toolCalls} onResults=${onResults} />
    <${Ending} finish=${finish} />
    ${message.isCut && html`<p class="quiet">${t("play.stopped")}</p>`}
    <${ProblemNotice} problem=${message.problem} />
    <${Bill} ...${message} />
    ${isAnswer && !isGrowing && html`<div class="actions">${content && html`<${CopyText} text=${content} />`}${onAgain && html`<${Button} look="link" onClick=${onAgain}>${t("play.again")}<//>`}</div>`}
  </li>`
}

/** What all answers that are shown have used. */
const Total = ({ messages }) => {
  const { t, language } = useText()
  const used = messages.flatMap(({ usage }) => (usage ? [usage] : []))
  if (used.length < 2) return null
  const sum = (name) => used.reduce((total, usage) => total + (usage[name] ?? 0), 0)
  return html`<p class="quiet">${t("play.total")} ${t("play.tokens", {
    input: count(sum("prompt_tokens"), language),
    output: count(sum("completion_tokens"), language),
  })} · <b><${Amount} value=${sum("cost_idr")} /></b></p>`
}

/** What a screen reader hears when an answer is complete. */
const heard = (t, { role, content, toolCalls = [] } = {}) => {
  if (role !== "assistant") return ""
  const calls = toolCalls.map(({ name }) => `${t("play.call")} ${name}`)
  return [content, ...calls].filter(Boolean).join(" ")
}

/** A conversation; the last answer can be asked for again, and its calls take results. */
export const Talk = ({ talk, onAgain, onResults }) => {
  const { t } = useText()
  const end = useRef()
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [talk.messages])
  const last = talk.messages.at(-1)
  const finished = talk.busy ? "" : heard(t, last)
  const isDue = areResultsDue(talk)
  return html`
    <ol class="talk" aria-label=${t("play.talk")}>
      ${talk.messages.map((message, index) => html`<${Message} key=${index} message=${message} isGrowing=${talk.busy && message === last} onAgain=${message === last ? onAgain : undefined} onResults=${message === last && isDue ? onResults : undefined} />`)}
    </ol>
    <div ref=${end}></div>
    <${Total} messages=${talk.messages} />
    <p class="unseen" role="status">${finished}</p>
  `
}
