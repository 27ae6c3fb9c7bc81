import { useEffect, useId, useRef } from "preact/hooks"
import { html } from "../html.js"

/** A modal dialog. The browser keeps the focus inside, closes it on Escape, and restores the focus. */
export const Dialog = ({ title, onClose, children }) => {
  const dialog = useRef()
  const id = useId()
  useEffect(() => {
    const before = document.activeElement
    dialog.current.showModal()
    return () => before?.focus?.()
  }, [])
  return html`<dialog ref=${dialog} aria-labelledby=${id} onClose=${onClose}>
    <h2 id=${id}>${title}</h2>
    ${children}
  </dialog>`
}
