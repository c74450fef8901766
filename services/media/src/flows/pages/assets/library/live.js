// States as they change, by the stream of all clips of the token. A card that changed is asked for again.
// Without the parameter `token`, the stream of an admin has the clips of all tokens.
import { address, send } from '../owner/api.js'
import { data, text } from '../owner/page-data.js'
import { drawPlaceholders } from './placeholders.js'

/** Changes of this time are asked for together. */
const TOGETHER_MS = 250

/** Cards of one request. */
const MOST = 50

/** @param {HTMLElement | null} grid */
export function startLive(grid) {
  const source = new EventSource(address(`media/events?token=${data.token}`))
  /** @type {Set<string>} */
  const changed = new Set()
  let isDue = false

  const on = (/** @type {string} */ type, /** @type {(clip: { id: string, progress?: number }) => void} */ act) =>
    source.addEventListener(type, (event) => act(JSON.parse(event.data)))
  const refresh = (/** @type {{ id: string }} */ { id }) => {
    changed.add(id)
    if (!isDue) setTimeout(replaceChanged, TOGETHER_MS)
    isDue = true
  }

  on('processing', (clip) => {
    const bar = cardOf(clip.id)?.querySelector('progress')
    if (!bar || !clip.progress) return refresh(clip)
    bar.value = clip.progress
    const words = bar.previousElementSibling
    if (words) words.textContent = `${words.textContent?.replace(/[\d.,]+\s?%/, '')}${percent(clip.progress)}`
  })
  for (const type of ['ready', 'failed', 'updated', 'hidden']) on(type, refresh)
  on('deleted', ({ id }) => cardOf(id)?.remove())
  on('created', announce)
  on('reset', () => {
    for (const card of grid?.children ?? []) refresh({ id: card.getAttribute('data-id') ?? '' })
  })

  /** @param {string} id */
  const cardOf = (id) => grid?.querySelector(`[data-id="${CSS.escape(id)}"]`)

  /** A list that is sorted or searched has no known place for a new clip. */
  function announce() {
    const news = document.getElementById('news')
    const here = new URL(location.href)
    here.searchParams.delete('cursor')
    if (!news) return location.reload()
    const link = document.createElement('a')
    link.href = data.isFirst ? here.href : address('library')
    link.textContent = text('newClips')
    news.replaceChildren(link)
    news.hidden = false
  }

  async function replaceChanged() {
    isDue = false
    const ids = [...changed].filter(cardOf).slice(0, MOST)
    changed.clear()
    if (ids.length === 0) return
    const query = new URLSearchParams(ids.map((id) => ['id', id]))
    const answer = await send(`library/cards?${query}`, { headers: { accept: 'text/html' } }).catch(() => undefined)
    if (!answer || answer.redirected) return
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
    for (const card of page.querySelectorAll('li')) replace(document.importNode(card, true))
  }

  /** Keeps the choice and the focus of the card. @param {HTMLElement} fresh */
  function replace(fresh) {
    const old = cardOf(fresh.dataset.id ?? '')
    if (!old) return
    const focused = old.contains(document.activeElement) ? document.activeElement?.tagName : undefined
    const wasChosen = old.querySelector('input')?.checked ?? false
    old.replaceWith(fresh)
    drawPlaceholders(fresh)
    const box = fresh.querySelector('input')
    if (box) box.checked = wasChosen
    if (focused) /** @type {HTMLElement | null} */ (fresh.querySelector(focused.toLowerCase()))?.focus()
  }
}

/** @param {number} part */
const percent = (part) => new Intl.NumberFormat(document.documentElement.lang, { style: 'percent' }).format(part)
