// Buttons that copy the text of a field, whose id they name in `data-copy`.
import { text } from './page-data.js'
import { toast, toastFailure } from './toast.js'

export function startCopies() {
  document.addEventListener('click', ({ target }) => {
    if (target instanceof HTMLElement && target.dataset.copy) void copy(target.dataset.copy)
  })
}

/** @param {string} id */
async function copy(id) {
  const field = /** @type {HTMLInputElement} */ (document.getElementById(id))
  field.select()
  const copied = await navigator.clipboard?.writeText(field.value).then(
    () => true,
    () => false,
  )
  if (copied) toast(text('copied'))
  else toastFailure(new Error(text('notCopied')))
}
