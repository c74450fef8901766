// Choice of several clips: by click, with shift a range, by keyboard, or all of the search. Acts on them: bulk.js.
import { html, render } from '../lit.js'
import { call, wordsFor } from '../owner/api.js'
import { data, text } from '../owner/page-data.js'
import { toastFailure } from '../owner/toast.js'
import { actsOn } from './bulk.js'

/** Clips that one act changes at most. */
const MOST = 500
const PER_CALL = 100

/** @param {HTMLElement} grid */
export function startSelection(grid) {
  const form = /** @type {HTMLFormElement} */ (grid.closest('form'))
  const bar = barOf(form)
  /** Chosen clips, of which some may be on no page yet. @type {Set<string>} */
  const chosen = new Set()
  /** @type {HTMLInputElement | undefined} */
  let last
  let note = ''
  const boxes = () => /** @type {HTMLInputElement[]} */ ([...grid.querySelectorAll('li > input')])

  const draw = () => {
    for (const box of boxes()) box.checked = chosen.has(box.value)
    grid.classList.toggle('choosing', chosen.size > 0)
    bar.hidden = chosen.size === 0
    if (chosen.size === 0) note = ''
    const count = chosen.size === 1 ? text('oneChosen') : text('chosen', { count: chosen.size })
    render(
      html`<strong role="status">${count}${note && html` · ${note}`}</strong>
        <button type="button" class="quiet" @click=${chooseAll}>${text('chooseAll')}</button>
        ${actsOn([...chosen], data.may, forget)}
        <button type="button" class="quiet" @click=${clear}>${text('clear')}</button>`,
      bar,
    )
  }

  const set = (/** @type {HTMLInputElement[]} */ some, /** @type {boolean} */ isChosen) => {
    note = ''
    for (const { value } of some) {
      if (!isChosen) chosen.delete(value)
      else if (chosen.size < MOST) chosen.add(value)
    }
    if (isChosen && some.some(({ value }) => !chosen.has(value)))
      toastFailure(new Error(wordsFor('bulk_too_large', '')))
    draw()
  }

  const clear = () => {
    chosen.clear()
    draw()
  }

  /** Deleted clips are gone from page and choice at once. @param {string[]} deleted */
  const forget = (deleted) => {
    for (const id of deleted) {
      grid.querySelector(`[data-id="${CSS.escape(id)}"]`)?.remove()
      if (chosen.delete(id)) note = ''
    }
    draw()
  }

  async function chooseAll() {
    try {
      const found = await listMatches()
      chosen.clear()
      for (const id of found.ids) chosen.add(id)
      note = found.isWhole ? text('allChosen', { count: chosen.size }) : text('tooMany', { count: chosen.size })
      draw()
    } catch (error) {
      toastFailure(error)
    }
  }

  grid.addEventListener('click', (event) => {
    const box = event.target
    if (!(box instanceof HTMLInputElement)) return
    const all = boxes()
    const [from, to] = [last ? all.indexOf(last) : -1, all.indexOf(box)].sort((a, b) => a - b)
    const range = event.shiftKey && from !== undefined && from >= 0 ? all.slice(from, (to ?? from) + 1) : [box]
    set(range, box.checked)
    last = box
  })
  grid.addEventListener('keydown', (event) => {
    const card = event.target instanceof Element ? event.target.closest('li') : null
    if (!card) return
    if (event.key === 'Escape' && chosen.size > 0) clear()
    else if (event.key === 'a' && (event.ctrlKey || event.metaKey)) set(boxes(), true)
    else if (event.key === 'x' && !event.ctrlKey && !event.metaKey) card.querySelector('input')?.click()
    else if (!moveFocus(card, event)) return
    event.preventDefault()
  })
  form.addEventListener('submit', (event) => event.preventDefault())
  draw()
  return { refresh: draw, forget }
}

/** Moves between cards by arrows, Home and End. @param {Element} card @param {KeyboardEvent} event */
function moveFocus(card, { key, target }) {
  const columns = getComputedStyle(/** @type {Element} */ (card.parentElement)).gridTemplateColumns.split(' ').length
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }
  const cards = [...(card.parentElement?.children ?? [])]
  const at = cards.indexOf(card)
  const goals = { Home: 0, End: cards.length - 1 }
  const step = steps[/** @type {keyof typeof steps} */ (key)]
  const next = cards[goals[/** @type {keyof typeof goals} */ (key)] ?? (step === undefined ? -1 : at + step)]
  const kind = target instanceof HTMLInputElement ? 'input' : 'a'
  const goal = /** @type {HTMLElement | null | undefined} */ (next?.querySelector(kind))
  goal?.focus()
  return goal !== undefined
}

/** The place of the acts; without script it has the button of the form. @param {HTMLFormElement} form */
function barOf(form) {
  const bar = document.getElementById('bar') ?? document.createElement('div')
  bar.className = 'bar'
  bar.id = 'bar'
  bar.hidden = true
  bar.replaceChildren()
  form.append(bar)
  return bar
}

/** Ids of the clips that the address lists. */
async function listMatches() {
  /** @type {string[]} */
  const ids = []
  let cursor = ''
  do {
    const query = new URLSearchParams({ ...data.filters, token: data.token, limit: String(PER_CALL) })
    if (cursor) query.set('cursor', cursor)
    const { body } = await call(`media?${query}`)
    ids.push(...body.items.map((/** @type {{ id: string }} */ { id }) => id))
    cursor = body.next_cursor
  } while (cursor && ids.length < MOST)
  return { ids: ids.slice(0, MOST), isWhole: !cursor && ids.length <= MOST }
}
