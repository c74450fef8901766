// The page of one album made live: fields that are saved in place, order, links and copies.
import { call, Refusal } from '../owner/api.js'
import { startCopies } from '../owner/copies.js'
import { data, text } from '../owner/page-data.js'
import { toast, toastFailure } from '../owner/toast.js'
import { startLinks } from './clip-links.js'

/** @typedef {'title' | 'description' | 'visibility'} Name */

const path = `albums/${data.id}`
const form = /** @type {HTMLFormElement | null} */ (document.getElementById('album'))
const list = document.getElementById('items')

/** Fields as they are stored. @type {Record<Name, string>} */
let stored = data.fields
/** @type {string | null} */
let etag = data.etag
/** Changes are sent one after the other: each names the state that the last one made. */
let queue = Promise.resolve()

const enqueue = (/** @type {() => Promise<void>} */ act) => {
  queue = queue.then(act)
}

if (document.getElementById('links')) startLinks(path, { areListed: false })
startCopies()

form?.addEventListener('submit', (event) => {
  event.preventDefault()
  enqueue(save)
})
form?.addEventListener('change', () => form.requestSubmit())

list?.addEventListener('click', ({ target }) => {
  const button = target instanceof HTMLElement ? target.closest('button') : null
  const item = button?.closest('li')
  if (button && item) enqueue(() => change(item, button).catch(toastFailure))
})

/** @param {Name} name */
const input = (name) => /** @type {HTMLInputElement} */ (form?.elements.namedItem(name))

/** Typed values that are not stored yet. */
function changes() {
  const names = /** @type {Name[]} */ (Object.keys(stored))
  return form ? names.filter((name) => input(name).value.trim() !== stored[name]) : []
}

async function save() {
  const names = changes()
  if (names.length === 0) return
  const body = Object.fromEntries(names.map((name) => [name, input(name).value]))
  say(text('saving'))
  try {
    const before = stored.visibility
    const answer = await call(path, { method: 'PATCH', body, headers: etag ? { 'if-match': etag } : undefined })
    // The service cleans texts. Typing that went on stays.
    const typed = changes().filter((name) => input(name).value !== body[name])
    keep(answer, typed)
    say(text('saved'))
    const heading = document.querySelector('h1')
    if (heading) heading.textContent = stored.title
    // Another visibility has other addresses on the page.
    if (before !== stored.visibility) reload()
  } catch (error) {
    const isStale = error instanceof Refusal && error.code === 'album_changed'
    if (isStale) await follow(names).catch(sayUnsaved)
    else sayUnsaved(error)
  }
}

/** Reads what was changed elsewhere. Typed text stays; saved again, it wins. @param {Name[]} names */
async function follow(names) {
  const before = stored
  const answer = await call(`${path}?limit=1`)
  keep(answer, changes())
  const other = names.find((name) => stored[name] !== before[name])
  if (other === undefined) return save()
  say(text('changedTo', { value: stored[other] || text('empty') }), true)
}

/** @param {{ body: any, etag: string | null }} answer @param {Name[]} typed names of fields that keep their text */
function keep({ body, etag: given }, typed) {
  stored = { title: body.title, description: body.description ?? '', visibility: body.visibility }
  etag = given
  for (const name of /** @type {Name[]} */ (Object.keys(stored))) {
    if (form && !typed.includes(name)) input(name).value = stored[name]
  }
}

/** @param {unknown} error */
const sayUnsaved = (error) => say(text('undone', { reason: error instanceof Error ? error.message : '' }), true)

/** @param {string} words */
function say(words, isBad = false) {
  const place = document.getElementById('said')
  place?.classList.toggle('bad', isBad)
  if (place) place.textContent = words
}

/** Moves a clip before another, or takes it out. @param {HTMLElement} item @param {HTMLButtonElement} button */
async function change(item, button) {
  if (!list || !item.isConnected) return
  const { act } = button.dataset
  if (act === 'out') return takeOut(item)
  const id = String(item.dataset.id)
  const [earlier, later] = [item.previousElementSibling, item.nextElementSibling]
  if (act === 'first') {
    const first = data.first ?? idOf(list.firstElementChild)
    if (first !== id) await put(id, first)
    if (data.first) return reload()
    list.prepend(item)
  } else if (act === 'up') {
    const other = idOf(earlier) ?? data.previous
    if (other) await put(id, other)
    if (other && !earlier) return reload()
    earlier?.before(item)
  } else {
    const other = idOf(later) ?? data.next
    if (other) await put(other, id)
    if (other && !later) return reload()
    later?.after(item)
  }
  button.focus()
  if (!data.previous) {
    const place = [...list.children].indexOf(item) + 1
    toast(text('moved', { place, count: document.getElementById('count')?.textContent ?? '' }))
  }
}

/** @param {Element | null} item */
const idOf = (item) => (item instanceof HTMLElement ? item.dataset.id : undefined)

/** @param {string} id @param {string} before */
async function put(id, before) {
  ;({ etag } = await call(`${path}/items`, { method: 'POST', body: { ids: [id], before } }))
}

/** @param {HTMLElement} item */
async function takeOut(item) {
  ;({ etag } = await call(`${path}/items/${item.dataset.id}`, { method: 'DELETE' }))
  const near = item.nextElementSibling ?? item.previousElementSibling
  item.remove()
  toast(text('takenOut'))
  const count = document.getElementById('count')
  if (count) count.textContent = String(Number(count.textContent) - 1)
  if (!near) return reload()
  near.querySelector('button')?.focus()
}

/** Typed text stays. */
function reload() {
  if (changes().length === 0) location.reload()
}

document.body.dataset.started = ''
