// Fields of a clip, each saved when it is left. A change of elsewhere is shown beside one's own, and none is lost.
import { html, render } from '../lit.js'
import { call, Refusal } from '../owner/api.js'
import { openDialog } from '../owner/dialog.js'
import { data, text } from '../owner/page-data.js'
import { proposeTags } from './tag-proposals.js'

/** @typedef {Record<string, unknown>} Changes */
/** @typedef {{ name: string, read: () => Changes, show: (clip: any) => void, isTyped?: boolean }} Field */

const form = /** @type {HTMLFormElement} */ (document.getElementById('clip'))
const input = (/** @type {string} */ name) => /** @type {HTMLInputElement} */ (form?.elements.namedItem(name))

/** @type {Field[]} */
const fields = [
  {
    ...{ name: 'title', isTyped: true, read: () => ({ title: input('title').value.trim() || null }) },
    show: ({ title }) => {
      input('title').value = title ?? ''
    },
  },
  {
    ...{ name: 'tags', isTyped: true, read: () => ({ tags: tagsIn(input('tags').value) }) },
    show: ({ tags }) => {
      input('tags').value = tags.join(', ')
    },
  },
  {
    ...{ name: 'attribution', isTyped: true, read: () => ({ attribution: readCredit() }) },
    show: ({ attribution }) => {
      input('site').value = attribution?.url ?? attribution?.site ?? ''
      input('user').value = attribution?.user ?? ''
    },
  },
  {
    ...{ name: 'nsfw', read: () => ({ nsfw: input('nsfw').checked }) },
    show: ({ nsfw }) => {
      input('nsfw').checked = nsfw
    },
  },
  {
    ...{ name: 'visibility', read: () => ({ visibility: input('visibility').value }) },
    show: ({ visibility }) => {
      input('visibility').value = visibility
    },
  },
  {
    ...{ name: 'lifetime', read: readLifetime },
    show: ({ sliding, expires_at: end }) => {
      const kept = input('lifetime').querySelector('option[value=""]')
      if (kept) kept.textContent = `${text('keep')}: ${spell('expires_at', end)}`
      input('lifetime').value = ''
      input('sliding').checked = sliding
    },
  },
]

/** Names of controls that belong to a field of another name. */
const OWNERS = new Map([
  ['site', 'attribution'],
  ['user', 'attribution'],
  ['sliding', 'lifetime'],
])

/** @param {string} path */
export function startForm(path) {
  /** @type {any} */
  let clip
  /** @type {string | null} */
  let etag = null
  /** The clip as each field showed it last, so the state that its reader knows. @type {Map<Field, any>} */
  const known = new Map()
  // Changes are sent one after the other: each names the state that the last one made.
  let queue = load().catch(() => {})

  async function load() {
    take(await call(path))
  }

  /** Shows a state, but not over text that is not saved. @param {{ body: any, etag: string | null }} answer */
  function take(answer, /** @type {Field | undefined} */ typed = undefined) {
    clip = answer.body
    etag = answer.etag
    for (const field of fields) {
      if (isUnsaved(field)) continue
      known.set(field, clip)
      if (field !== typed) field.show(clip)
    }
  }

  form.addEventListener('input', ({ target }) => fieldOf(target)?.setAttribute('data-unsaved', ''))
  form.addEventListener('submit', (event) => event.preventDefault())
  form.addEventListener('change', ({ target }) => {
    const name = target instanceof HTMLElement ? (target.getAttribute('name') ?? '') : ''
    const field = fields.find((each) => each.name === (OWNERS.get(name) ?? name))
    if (!field) return
    fieldOf(target)?.setAttribute('data-unsaved', '')
    // A failure leaves the queue open for the next change.
    queue = queue.then(() => save(field)).catch((error) => sayUndone(field, error))
  })
  proposeTags(input('tags'), () => input('tags').dispatchEvent(new Event('change', { bubbles: true })))

  /** @param {Field} field @returns {Promise<void>} */
  async function save(field) {
    const changes = field.read()
    say(field, text('saving'))
    if (!clip) await load()
    const differing = differences(field, changes)
    if (differing.length > 0 && !(await isPreferred(changes, differing))) {
      boxOf(field)?.removeAttribute('data-unsaved')
      known.set(field, clip)
      field.show(clip)
      say(field, '')
      return showTitle()
    }
    try {
      await send(field, changes)
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'clip_changed') throw error
      if (differing.length > 0) known.set(field, clip)
      await load()
      return save(field)
    }
    say(field, text('saved'))
    showTitle()
    // A private clip has other addresses on its page.
    const isPrivate = clip.visibility === 'private'
    if (isPrivate !== data.isPrivate && !document.querySelector('[data-unsaved]')) location.reload()
  }

  /** Typed text stays for another attempt. @param {Field} field @param {unknown} error */
  function sayUndone(field, error) {
    say(field, text('undone', { reason: error instanceof Error ? error.message : '' }), true)
    if (field.isTyped || !clip) return
    boxOf(field)?.removeAttribute('data-unsaved')
    known.set(field, clip)
    field.show(clip)
  }

  /** @param {Field} field @param {Changes} changes */
  async function send(field, changes) {
    const headers = etag ? { 'if-match': etag } : undefined
    const answer = await call(path, { method: 'PATCH', body: changes, headers })
    known.set(field, answer.body)
    // Text that was typed meanwhile is saved next.
    if (JSON.stringify(field.read()) === JSON.stringify(changes)) boxOf(field)?.removeAttribute('data-unsaved')
    take(answer, field.isTyped ? field : undefined)
  }

  /**
   * Members that differ from the clip, if another changed one of them. Changes elsewhere, as a new poster, leave them.
   * @param {Field} field @param {Changes} changes
   */
  function differences(field, changes) {
    const members = Object.keys(changes)
    const before = known.get(field) ?? clip
    const isOther = members.some((name) => theirs(name) !== spell(theirName(name), before[theirName(name)]))
    return isOther ? members.filter((name) => theirs(name) !== spell(name, changes[name])) : []
  }

  /** @param {string} name */
  const theirs = (name) => spell(theirName(name), clip[theirName(name)])

  /** Shows both, and resolves with whether the reader's stays. @param {Changes} changes @param {string[]} differing */
  async function isPreferred(changes, differing) {
    const isMine = await openDialog(text('changedTitle'), (/** @type {(isMine?: boolean) => void} */ close) => {
      const row = (/** @type {string} */ name) =>
        html`<tr><th scope="row">${labelOf(name)}</th><td dir="auto" data-column=${text('yours')}>${spell(name, changes[name])}</td>
          <td dir="auto" data-column=${text('theirs')}>${theirs(name)}</td></tr>`
      return html`<p>${text('changedText')}</p>
        <table class="both"><thead><tr><td></td><th scope="col">${text('yours')}</th><th scope="col">${text('theirs')}</th></tr></thead>
        <tbody>${differing.map(row)}</tbody></table>
        <div class="actions"><button type="button" class="quiet" @click=${() => close(false)}>${text('takeTheirs')}</button>
        <button type="button" class="primary" autofocus @click=${() => close(true)}>${text('keepYours')}</button></div>`
    })
    if (isMine === undefined) throw new Error(text('changedTitle'))
    return isMine
  }

  function showTitle() {
    const heading = document.querySelector('h1')
    if (heading && clip.title) heading.textContent = clip.title
  }
}

/** @param {Field} field */
const boxOf = ({ name }) => fieldOf(input(name === 'attribution' ? 'site' : name))

/** @param {Field} field */
const isUnsaved = (field) => boxOf(field)?.hasAttribute('data-unsaved') ?? false

/** @param {EventTarget | null} control */
const fieldOf = (control) => (control instanceof Element ? control.closest('.field') : null)

/** Name of a member in answers: a span becomes the moment of its end. @param {string} name */
const theirName = (name) => (name === 'expires_in' ? 'expires_at' : name)

/** @param {string} name */
function labelOf(name) {
  if (name === 'attribution') return fieldOf(input('site'))?.querySelector('legend')?.textContent ?? ''
  return input(name === 'expires_in' ? 'lifetime' : name).labels?.[0]?.textContent ?? ''
}

const moment = new Intl.DateTimeFormat(document.documentElement.lang, {
  ...{ dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' },
})

/** A value of a member in words, as the form has them. @param {string} name @param {any} value @returns {string} */
function spell(name, value) {
  if (name === 'expires_at') return value ? `${moment.format(new Date(value))} UTC` : text('forever')
  if (name === 'expires_in') return value ? optionOf('lifetime', value) : text('forever')
  if (name === 'visibility') return optionOf(name, value)
  if (name === 'attribution')
    return [value?.url ?? value?.site, value?.user].filter(Boolean).join(', ') || text('empty')
  if (typeof value === 'boolean') return text(value ? 'yes' : 'no')
  return [value].flat().join(', ') || text('empty')
}

/** @param {string} name @param {string} value */
const optionOf = (name, value) => input(name).querySelector(`option[value="${value}"]`)?.textContent ?? value

/** @param {Field} field @param {string} words */
function say({ name }, words, isBad = false) {
  const place = document.getElementById(`said-${name}`)
  if (!place) return
  place.classList.toggle('bad', isBad)
  render(html`${words}`, place)
}

/** @param {string} list */
const tagsIn = (list) =>
  list
    .split(',')
    .map((tag) => tag.trim())
    .filter(Boolean)

/** An address has a scheme, the name of a site has none. */
function readCredit() {
  const [site, user] = ['site', 'user'].map((name) => input(name).value.trim())
  if (!site && !user) return null
  return /^https?:/.test(site ?? '') ? { site: 'custom', url: site, user: user || null } : { site, user: user || null }
}

/** A changed box alone leaves the end of the lifetime. */
function readLifetime() {
  const span = input('lifetime').value
  return { sliding: input('sliding').checked, ...(span && { expires_in: span === 'never' ? null : span }) }
}
