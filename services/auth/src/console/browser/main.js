// Starts the console: asks for the session, draws the menu, and opens the screen of the address. All screens are loaded
// at once, so that a page that was opened before an upgrade never mixes modules of two versions.
import { api, onEndedSession } from './api.js'
import { closeDialogs } from './kit/dialog.js'
import { button, failure } from './kit/parts.js'
import { clearToasts, toastFailure } from './kit/toast.js'
import { html, nothing, render } from './lit.js'
import { link, match, present } from './router.js'
import { screens } from './screens.js'
import { openSession, session } from './session.js'
import { warnOfEnd } from './session-end.js'
import { returnToPlace, showSignIn } from './sign-in.js'

/** @typedef {import('./page.js').Page} Page */

const main = /** @type {HTMLElement} */ (document.querySelector('main'))
const banner = /** @type {HTMLElement} */ (document.querySelector('body > header'))

/** Aborts when the reader leaves the page. */
let left = new AbortController()

/** Ends the warning of the session's end. */
let forgetEnd = () => {}

/** Whether the next heading gets the focus, as after a link to another document. */
let movesFocus = false

async function open() {
  left.abort()
  left = new AbortController()
  closeDialogs()
  const { path: given, query } = present()
  const path = given || (screens[0]?.path ?? '')
  const found = match(screens, path)
  drawMenu(path)
  if (!found) return showPage('Not found', html`<p>The console has no page at this address.</p>`)
  const { screen, params } = found
  await openScreen(screen, { params, query, signal: left.signal })
}

/** @param {import('./page.js').Screen} screen @param {Pick<Page, 'params' | 'query' | 'signal'>} place */
async function openScreen(screen, place) {
  const { signal } = place
  let title = screen.title
  const show = (/** @type {unknown} */ content) => {
    if (!signal.aborted) showPage(title, content)
  }
  /** @type {Page} */
  const page = {
    ...place,
    show,
    setTitle: (text) => {
      title = text
    },
    reload: async () => {
      if (!signal.aborted) await fill()
    },
  }
  const fill = async () => {
    main.setAttribute('aria-busy', 'true')
    try {
      await screen.open(page)
    } catch (error) {
      show(failure(error, fill))
    } finally {
      if (!signal.aborted) main.removeAttribute('aria-busy')
    }
  }
  await fill()
}

/** @param {string} title @param {unknown} content */
function showPage(title, content) {
  document.title = `${title} – Console`
  const hadFocus = main.contains(document.activeElement)
  render(html`<h1 tabindex="-1">${title}</h1>${content}`, main)
  // The button that had it may be gone, as one of an act that is done.
  if (movesFocus || (hadFocus && !main.contains(document.activeElement))) main.querySelector('h1')?.focus()
  movesFocus = false
}

/** @param {string} path */
function drawMenu(path) {
  const { user, capabilities } = session()
  const inMenu = screens.filter(({ inMenu, needs }) => inMenu && (!needs || capabilities[needs]))
  const current = (/** @type {string} */ own) => (path === own || path.startsWith(`${own}/`) ? 'page' : nothing)
  render(
    html`
      <a class="skip" href="#main" @click=${skip}>Skip to the content</a>
      <strong>Console</strong>
      <nav aria-label="Console">
        ${inMenu.map((screen) => html`<a href=${link(screen.path)} aria-current=${current(screen.path)}>${screen.title}</a>`)}
      </nav>
      <div class="who">
        <a href=${link(`/users/${user.id}`)}>${user.name}</a>
        ${button('Sign out', signOut)}
      </div>`,
    banner,
  )
}

/** The fragment is the address of the screen. @param {Event} event */
function skip(event) {
  event.preventDefault()
  main.querySelector('h1')?.focus()
}

async function signOut() {
  try {
    await api.post('/console/sign-out')
  } catch (error) {
    return toastFailure(error)
  }
  leave({ code: 'signed_out', message: '' })
}

/** @param {{ code: string, message: string }} reason */
function leave(reason) {
  left.abort()
  forgetEnd()
  clearToasts()
  removeEventListener('hashchange', navigate)
  closeDialogs()
  render(html`<strong>Console</strong>`, banner)
  showSignIn(main, reason)
}

function navigate() {
  movesFocus = true
  void open()
}

async function start() {
  /** @type {import('./api.js').ApiFailure | undefined} */
  const refusal = await openSession().catch((error) => error)
  // The text of the shell, which stays where a module does not load.
  main.replaceChildren()
  if (refusal) return leave(refusal)
  onEndedSession(leave)
  forgetEnd = warnOfEnd(session())
  returnToPlace()
  addEventListener('hashchange', navigate)
  await open()
}

document.body.dataset.started = ''
void start()
