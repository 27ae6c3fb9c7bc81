import { useEffect, useRef, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { saveReply } from "../download.js"
import { decimal } from "../format.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Dialog } from "../parts/dialog.js"
import { ProblemNotice } from "../parts/notice.js"
import { surroundings } from "../surroundings.js"

const useScore = (hit) => {
  const { t, language } = useText()
  return t("hit.score", { score: decimal(hit.score, language) })
}

const Hit = ({ hit, name, onOpen }) => {
  const { t } = useText()
  const score = useScore(hit)
  return html`<li class="hit">
    <p class="head"><b>${name}</b>
      ${hit.page && html`<span class="quiet">${t("hit.page", { page: hit.page })}</span>`}
      <span class="quiet">${score}</span></p>
    <meter min="0" max="1" value=${Math.max(0, hit.score)} aria-label=${score}></meter>
    <blockquote>${hit.text}</blockquote>
    <p><${Button} look="link" aria-haspopup="dialog" aria-label=${t("hit.open.of", { name })} onClick=${onOpen}>${t("hit.open")}<//></p>
  </li>`
}

/** What is seen of the text before a hit, in px. */
const spaceAbove = 72

/** The text around a hit, with the beginnings of pages between. */
const Passage = ({ hit }) => {
  const { t } = useText()
  const [box, marked] = [useRef(), useRef()]
  useEffect(() => {
    const begin =
      marked.current.getBoundingClientRect().top - box.current.getBoundingClientRect().top
    box.current.scrollTop += begin - spaceAbove
  }, [hit])
  const parts = surroundings(hit)
  return html`<div ref=${box} class="passage words" tabindex="0" role="region" aria-label=${t("hit.text")}>${parts.map(
    ({ text, isHit, page }, at) => html`
      ${page !== undefined && page !== parts[at - 1]?.page && html`<span class="page-mark">${t("hit.page", { page })}</span>`}
      ${isHit ? html`<mark ref=${marked}>${text}</mark>` : text}`,
  )}</div>`
}

const Opened = ({ hits, at, nameOf, onMove, onClose }) => {
  const { t } = useText()
  const { v1 } = useApp()
  const [problem, refuse] = useState(undefined)
  const hit = hits[at]
  const name = nameOf(hit)
  const move = (by) => {
    if (hits[at + by]) onMove(at + by)
  }
  const byKey = ({ key, altKey, ctrlKey, metaKey }) => {
    if (altKey || ctrlKey || metaKey) return
    if (key === "ArrowLeft") move(-1)
    if (key === "ArrowRight") move(1)
  }
  const save = () => {
    refuse(undefined)
    return v1
      .send("GET", `/v1/files/${hit.file_id}/content`)
      .then((reply) => saveReply(reply, name), refuse)
  }
  const score = useScore(hit)
  const place = t("hit.place", { place: at + 1, all: hits.length })
  return html`<${Dialog} title=${name} look="wide" onClose=${onClose} onKeyDown=${byKey}>
    <p class="quiet" role="status">${place} · ${hit.page && html`${t("hit.page", { page: hit.page })} · `}${score}</p>
    <${Passage} hit=${hit} />
    <${ProblemNotice} problem=${problem} />
    <div class="actions">
      <${Button} aria-disabled=${at === 0 || undefined} onClick=${() => move(-1)}>${t("hit.before")}<//>
      <${Button} aria-disabled=${at === hits.length - 1 || undefined} onClick=${() => move(1)}>${t("hit.next")}<//>
      <${Button} look="link" aria-label=${t("file.download.of", { name })} onClick=${save}>${t("file.download")}<//>
      <${Button} onClick=${onClose}>${t("close")}<//>
    </div>
    <p class="hint">${t("hit.keys")}</p>
  <//>`
}

/** The hits of a query; each opens in the text around it. `names`: of files, by their ids. */
export const Hits = ({ hits, names }) => {
  const { t } = useText()
  const [opened, open] = useState(undefined)
  const nameOf = ({ file_id: id }) => names.get(id) ?? id
  return html`
    <ol class="hits" aria-label=${t("query.found")}>${hits.map((hit, at) => html`<${Hit} key=${`${hit.file_id} ${hit.chunk_index}`} hit=${hit} name=${nameOf(hit)} onOpen=${() => open(at)} />`)}</ol>
    ${opened !== undefined && html`<${Opened} hits=${hits} at=${opened} nameOf=${nameOf} onMove=${open} onClose=${() => open(undefined)} />`}
  `
}
