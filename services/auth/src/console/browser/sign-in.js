// The page without a session: why there is none, and the way to the sign-in. The address of the screen is kept for the
// way back, as the server never sees a fragment.
import { address } from './api.js'
import { html, nothing, render } from './lit.js'

/** @type {Record<string, string>} */
const REASONS = {
  no_authorization: 'Sign in to use the console.',
  signed_out: 'You are signed out.',
  session_not_found: 'Your session has ended. It was signed out elsewhere, or it has expired.',
  session_expired: 'Your session has expired.',
  user_banned: 'This account is banned.',
  user_not_found: 'This account no longer exists.',
  not_admin: 'This account is not an administrator.',
  insufficient_aal: 'The console needs a second factor. Set one up in your account, then sign in with it.',
}

/**
 * Says that the session has ended, and leads to the sign-in.
 * @param {HTMLElement} main
 * @param {{ code: string, message: string }} reason
 */
export function showSignIn(main, { code, message }) {
  const refused = new URLSearchParams(location.search).get('refused') ?? ''
  const isRefused = code === 'no_authorization' && Object.hasOwn(REASONS, refused)
  const shown = isRefused ? refused : code
  document.title = 'Sign in – Console'
  render(
    html`
      <h1 tabindex="-1">Sign in</h1>
      <div class="card">
        <p role="alert">${REASONS[shown] ?? message}</p>
        <p class="actions">
          <a class="button" href=${address('/console/sign-in', { again: isRefused ? 1 : '' }).href} @click=${keepPlace}>
            ${shown === 'not_admin' ? 'Sign in as another user' : 'Sign in'}</a>
          ${shown === 'insufficient_aal' ? html`<a href=${address('/ui/account').href}>Your account</a>` : nothing}
        </p>
      </div>`,
    main,
  )
  main.removeAttribute('aria-busy')
  main.querySelector('h1')?.focus()
}

const PLACE = 'console-place'

/** A second attempt, after a refusal, has no place of its own. */
function keepPlace() {
  if (location.hash) sessionStorage.setItem(PLACE, location.hash)
}

/** Returns to the screen from before the sign-in. */
export function returnToPlace() {
  const place = sessionStorage.getItem(PLACE)
  sessionStorage.removeItem(PLACE)
  if (place && location.hash === '') history.replaceState(null, '', place)
}
