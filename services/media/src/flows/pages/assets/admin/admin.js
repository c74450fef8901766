// Pages for administrators: keys for decisions, a question before an act that cannot be undone, live numbers. All of
// them work without this script, by their forms.
import { confirm } from '../owner/dialog.js'
import { text } from '../owner/page-data.js'
import { toast, toastFailure } from '../owner/toast.js'

const LIVE_MS = 5_000

const cards = () => /** @type {HTMLElement[]} */ ([...document.querySelectorAll('article.judged')])

/** @param {Element | null | undefined} act */
const press = (act) => /** @type {HTMLButtonElement | null | undefined} */ (act?.querySelector('button'))?.click()

/** @param {number} step */
function move(step) {
  const all = cards()
  const at = all.findIndex((card) => card.contains(document.activeElement))
  const next = all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + step))]
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}

const isTyping = () => /^(input|textarea|select)$/i.test(document.activeElement?.tagName ?? '')

document.addEventListener('keydown', (event) => {
  const { key, altKey, ctrlKey, metaKey, shiftKey } = event
  if (altKey || ctrlKey || metaKey || shiftKey || isTyping() || document.querySelector('dialog[open]')) return
  if (key === 'j' || key === 'k') return move(key === 'j' ? 1 : -1)
  if (key === 'u') return press(document.querySelector('[data-act="undo"]'))
  const card = document.activeElement?.closest('article.judged')
  if (/^[a-z]$/.test(key)) press(card?.querySelector(`[data-key="${key}"]`))
})

const LASTING = new Set(['delete', 'block', 'revoke'])

/** @type {HTMLFormElement | undefined} */
let confirmed

document.addEventListener('submit', async (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target)
  const act = form.closest('[data-act]')?.getAttribute('data-act')
  if (form === confirmed || !act || !LASTING.has(act)) return
  event.preventDefault()
  const label =
    form
      .querySelector('button')
      ?.textContent?.replace(/ \(\w\)$/, '')
      .trim() ?? ''
  if (!(await confirm({ title: label, question: text('confirm'), action: label }))) return
  confirmed = form
  form.requestSubmit()
})

document.addEventListener('click', async ({ target }) => {
  const button = target instanceof Element ? target.closest('[data-copy]') : null
  const source = button && document.getElementById(button.getAttribute('data-copy') ?? '')
  if (!source) return
  try {
    // Browsers have no clipboard on plain http.
    await navigator.clipboard.writeText(source.textContent ?? '')
    toast(text('copied'))
  } catch {
    toastFailure(new Error(text('notCopied')))
  }
})

/** @type {ReturnType<typeof setInterval> | undefined} */
let refreshing

/** Replaces the live parts of the page by those of now; ends, and says so, once the session has ended. */
async function refresh() {
  const answer = await fetch(location.href, { cache: 'no-store', credentials: 'same-origin' }).catch(() => undefined)
  if (refreshing && (answer?.redirected || answer?.status === 403)) {
    clearInterval(refreshing)
    refreshing = undefined
    return toastFailure(new Error(text('noLonger')))
  }
  if (!answer?.ok) return
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html')
  for (const part of document.querySelectorAll('[data-live]')) {
    const now = fresh.querySelector(`[data-live="${part.getAttribute('data-live')}"]`)
    if (now && now.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) {
      part.replaceChildren(...now.childNodes)
    }
  }
}

if (document.querySelector('[data-live]')) {
  refreshing = setInterval(() => {
    if (document.visibilityState === 'visible') refresh()
  }, LIVE_MS)
}

// After a decision the next report has the focus, so that the next key decides it.
if (new URLSearchParams(location.search).has('done')) cards()[0]?.focus()

document.body.dataset.started = ''
