import { useId, useLayoutEffect, useRef } from "preact/hooks"
import { html } from "../html.js"

/** A modal dialog; `look`: wide. The browser keeps the focus inside, closes it on Escape, and restores the focus. */
export const Dialog = ({ title, onClose, look, children, ...rest }) => {
  const dialog = useRef()
  const id = useId()
  // before the effects of what is in it, which may need its sizes
  useLayoutEffect(() => {
    const before = document.activeElement
    dialog.current.showModal()
    return () => before?.focus?.()
  }, [])
  return html`<dialog ref=${dialog} class=${look} aria-labelledby=${id} onClose=${onClose} ...${rest}>
    <h2 id=${id}>${title}</h2>
    ${children}
  </dialog>`
}
