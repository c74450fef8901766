// The caller: a token typed into the page, the session of the browser, or neither. The token is kept only on request,
// in this tab; it is never part of a URL.
import { $, form } from './elements.js'

const KEPT = 'media token'
const IS_SIGNED_IN = form.dataset.signedIn === 'true'

const typed = () => $('token')?.value.trim() ?? ''

/** Headers of a call. Without a token there is no access to events: the answer comes when the clip is ready. */
export function caller() {
  const token = typed()
  const isKnown = IS_SIGNED_IN || token !== ''
  return {
    isKnown,
    headers: token ? { Token: token } : IS_SIGNED_IN ? { 'x-media': '1' } : {},
    wait: isKnown ? { Prefer: 'respond-async' } : {},
  }
}

export const lacksToken = () => form.dataset.needsToken === 'true' && !caller().isKnown

export function keepToken() {
  if ($('keep')?.checked && typed()) sessionStorage.setItem(KEPT, typed())
  else sessionStorage.removeItem(KEPT)
}

if (!IS_SIGNED_IN) {
  $('token').value = sessionStorage.getItem(KEPT) ?? ''
  $('keep').checked = $('token').value !== ''
  $('keep').addEventListener('change', keepToken)
}

/** Empties the form, but for the token. */
export function resetForm() {
  const [token, isKept] = [$('token')?.value, $('keep')?.checked]
  form.reset()
  if (IS_SIGNED_IN) return
  $('token').value = token
  $('keep').checked = isKept
}
