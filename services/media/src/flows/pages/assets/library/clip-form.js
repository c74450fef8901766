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
    show: ({ sliding }) => {
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
  // Changes are sent one after the other: each names the state that the last one made.
  let queue = load().catch(() => {})

  async function load() {
    const { body, etag: given } = await call(path)
    clip = body
    etag = given
  }

  form.addEventListener('input', ({ target }) => fieldOf(target)?.setAttribute('data-unsaved', ''))
  form.addEventListener('submit', (event) => event.preventDefault())
  form.addEventListener('change', ({ target }) => {
    const name = target instanceof HTMLElement ? (target.getAttribute('name') ?? '') : ''
    const field = fields.find((each) => each.name === (OWNERS.get(name) ?? name))
    if (field) queue = queue.then(() => save(field))
  })
  proposeTags(input('tags'), () => input('tags').dispatchEvent(new Event('change', { bubbles: true })))

  /** @param {Field} field */
  async function save(field) {
    const changes = field.read()
    say(field, text('saving'))
    try {
      if (!clip) await load()
      await send(changes)
      fieldOf(input(field.name === 'attribution' ? 'site' : field.name))?.removeAttribute('data-unsaved')
      say(field, text('saved'))
      // A private clip has other addresses on its page.
      const isPrivate = clip.visibility === 'private'
      if (isPrivate !== data.isPrivate && !document.querySelector('[data-unsaved]')) location.reload()
      showTitle()
    } catch (error) {
      const isConflict = error instanceof Refusal && error.code === 'clip_changed'
      if (isConflict && (await resolve(field, changes))) return
      say(field, text('undone', { reason: error instanceof Error ? error.message : '' }), true)
      // Typed text stays for another attempt.
      if (!field.isTyped && clip) field.show(clip)
    }
  }

  /** @param {Changes} changes */
  async function send(changes) {
    const headers = etag ? { 'if-match': etag } : undefined
    const answer = await call(path, { method: 'PATCH', body: changes, headers })
    clip = answer.body
    etag = answer.etag
  }

  /** Shows both; resolves with whether one was taken. @param {Field} field @param {Changes} changes */
  async function resolve(field, changes) {
    await load()
    const isMine = await openDialog(text('changedTitle'), (/** @type {(isMine?: boolean) => void} */ close) => {
      const row = (/** @type {string} */ name) =>
        html`<tr><th scope="row">${labelOf(name)}</th><td dir="auto" data-column=${text('yours')}>${spell(changes[name])}</td>
          <td dir="auto" data-column=${text('theirs')}>${spell(clip[name])}</td></tr>`
      return html`<p>${text('changedText')}</p>
        <table class="both"><thead><tr><td></td><th scope="col">${text('yours')}</th><th scope="col">${text('theirs')}</th></tr></thead>
        <tbody>${Object.keys(changes).map(row)}</tbody></table>
        <div class="actions"><button type="button" class="quiet" @click=${() => close(false)}>${text('takeTheirs')}</button>
        <button type="button" class="primary" autofocus @click=${() => close(true)}>${text('keepYours')}</button></div>`
    })
    if (isMine === undefined) return false
    if (isMine) {
      await save(field)
      return true
    }
    // Fields that are typed in keep their text.
    for (const each of fields)
      if (each === field || !fieldOf(input(ownName(each)))?.hasAttribute('data-unsaved')) each.show(clip)
    say(field, '')
    showTitle()
    return true
  }

  function showTitle() {
    const heading = document.querySelector('h1')
    if (heading && clip.title) heading.textContent = clip.title
  }
}

/** @param {Field} field */
const ownName = ({ name }) => (name === 'attribution' ? 'site' : name)

/** @param {EventTarget | null} control */
const fieldOf = (control) => (control instanceof Element ? control.closest('.field') : null)

/** @param {string} name */
const labelOf = (name) => document.querySelector(`label[for="f-${name}"]`)?.textContent ?? name

/** @param {unknown} value */
function spell(value) {
  if (Array.isArray(value)) return value.join(', ') || text('empty')
  if (value && typeof value === 'object') return Object.values(value).join(', ')
  return value === null || value === undefined || value === '' ? text('empty') : String(value)
}

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
