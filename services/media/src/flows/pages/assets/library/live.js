// States as they change, by the stream of all clips of the token. A card that changed is asked for again.
// Without the parameter `token`, the stream of an admin has the clips of all tokens.
import { address, send } from '../owner/api.js'
import { followEvents } from '../owner/events.js'
import { data, text } from '../owner/page-data.js'
import { drawPlaceholders } from './placeholders.js'

/** Changes of this time are asked for together. */
const TOGETHER_MS = 250

/** Pause after requests that failed, which doubles up to this. */
const LONGEST_PAUSE_MS = 60_000

/** Cards of one request. */
const MOST = 50

/** @param {HTMLElement | null} grid @param {(ids: string[]) => void} [forget] Removes clips that are gone. */
export function startLive(grid, forget) {
  /** @type {Set<string>} */
  const changed = new Set()
  let pause = TOGETHER_MS
  let isDue = false

  const refresh = (/** @type {{ id: string }} */ { id }) => {
    changed.add(id)
    schedule()
  }
  const refreshAll = (/** @type {string} */ cards) => {
    for (const card of grid?.querySelectorAll(cards) ?? []) refresh({ id: card.getAttribute('data-id') ?? '' })
  }
  const showProgress = (/** @type {{ id: string, progress?: number }} */ clip) => {
    const bar = cardOf(clip.id)?.querySelector('progress')
    if (!bar || !clip.progress) return refresh(clip)
    bar.value = clip.progress
    const words = bar.previousElementSibling
    if (words) words.textContent = `${words.textContent?.replace(/[\d.,]+\s?%/, '')}${percent(clip.progress)}`
  }

  followEvents(
    `media/events?token=${data.token}`,
    {
      ...{ processing: showProgress, ready: refresh, failed: refresh, updated: refresh, hidden: refresh },
      ...{ created: announce, reset: () => refreshAll('li') },
      deleted: ({ id }) => forget?.([id]),
    },
    (isAgain) => {
      // Events between the rendering of the page and this moment are in no stream.
      refreshAll(isAgain ? 'li' : 'li[data-state="processing"]')
      document.body.dataset.live = ''
    },
  )

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
  }

  function schedule() {
    if (!isDue && changed.size > 0) setTimeout(replaceChanged, pause)
    isDue = changed.size > 0
  }

  async function replaceChanged() {
    for (const id of changed) if (!cardOf(id)) changed.delete(id)
    const ids = [...changed].slice(0, MOST)
    // A clip that changes from here on is asked for again.
    for (const id of ids) changed.delete(id)
    try {
      if (ids.length > 0) await replaceCards(ids)
      pause = TOGETHER_MS
    } catch {
      for (const id of ids) changed.add(id)
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
    }
    isDue = false
    schedule()
  }

  /** @param {string[]} ids */
  async function replaceCards(ids) {
    const query = new URLSearchParams(ids.map((id) => ['id', id]))
    const answer = await send(`library/cards?${query}`, { headers: { accept: 'text/html' } })
    if (answer.redirected) throw new Error('signed out')
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
    const cards = [...page.querySelectorAll('li')]
    for (const card of cards) replace(document.importNode(card, true))
    const gone = ids.filter((id) => !cards.some((card) => card.dataset.id === id))
    if (gone.length > 0) forget?.(gone)
  }

  /** Keeps the choice, the focus and the address of the card. @param {HTMLElement} fresh */
  function replace(fresh) {
    const old = /** @type {HTMLElement | null | undefined} */ (cardOf(fresh.dataset.id ?? ''))
    if (!old) return
    const focused = old.contains(document.activeElement) ? document.activeElement?.tagName : undefined
    const wasChosen = old.querySelector('input')?.checked ?? false
    if (old.dataset.page) fresh.dataset.page = old.dataset.page
    old.replaceWith(fresh)
    drawPlaceholders(fresh)
    const box = fresh.querySelector('input')
    if (box) box.checked = wasChosen
    if (focused) /** @type {HTMLElement | null} */ (fresh.querySelector(focused.toLowerCase()))?.focus()
  }
}

/** @param {number} part */
const percent = (part) => new Intl.NumberFormat(document.documentElement.lang, { style: 'percent' }).format(part)
