// The page: signs users up, in and out through auth, and calls the application's own server as the signed-in user.
// The page follows the session, which the client keeps and refreshes for all tabs.
import { AuthClient } from '@supabase/auth-js'

const { authUrl, inboxUrl } = await (await fetch('/config.json')).json()

// One client for the page: it keeps the session in localStorage, refreshes it, and completes a sign-in by a link.
const auth = new AuthClient({ url: authUrl, flowType: 'pkce' })

async function signUp(email, password) {
  // The link of the mail leads back to this page. Auth permits the host of AUTH_SITE_URL and AUTH_URI_ALLOW_LIST.
  const options = { emailRedirectTo: `${location.origin}/` }
  const { data, error } = await auth.signUp({ email, password, options })
  if (error) throw error
  if (!data.session) showMailSent(email)
}

async function signIn(email, password) {
  const { error } = await auth.signInWithPassword({ email, password })
  if (error) throw error
}

/** Signs out in this browser; without a scope every other device of the user would be signed out too. */
async function signOut() {
  const { error } = await auth.signOut({ scope: 'local' })
  if (error) throw error
}

/** Calls the application's server as the signed-in user; an expired access token is refreshed first. */
async function call(path) {
  const { data } = await auth.getSession()
  const response = await fetch(path, { headers: { authorization: `Bearer ${data.session?.access_token}` } })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error)
  return answer
}

const find = (id) => document.getElementById(id)
const form = find('sign-in')

form.addEventListener('submit', (event) => {
  event.preventDefault()
  const { email, password } = Object.fromEntries(new FormData(form))
  const action = event.submitter?.value === 'sign-up' ? signUp : signIn
  attempt(() => action(email, password))
})
find('back').addEventListener('click', () => show('sign-in'))
find('call').addEventListener('click', () => attempt(async () => showClaims(await call('/api/me'))))
find('sign-out').addEventListener('click', () => attempt(signOut))
find('inbox').href = inboxUrl

/** Runs one action at a time, and shows its failure as a sentence. */
async function attempt(action) {
  if (document.body.ariaBusy === 'true') return
  document.body.ariaBusy = 'true'
  say('')
  try {
    await action()
  } catch (error) {
    say(explain(error), 'error')
  } finally {
    document.body.ariaBusy = 'false'
  }
}

const SENTENCES = {
  invalid_credentials: 'The e-mail address or the password is wrong.',
  email_not_confirmed: 'This address is not confirmed yet. Open the link of the mail first.',
  otp_expired: 'This link has expired or was used before. Sign in, or create the account again.',
  user_already_exists: 'There is an account with this address. Sign in instead.',
}

function explain(error) {
  if (error.name === 'AuthRetryableFetchError') return `Auth does not answer at ${authUrl}. Try again shortly.`
  if (error instanceof TypeError) return 'The server does not answer. Try again shortly.'
  return SENTENCES[error.code ?? error.details?.code] ?? `${error.message.replace(/\.$/, '')}.`
}

function say(sentence, kind = '') {
  find('message').textContent = sentence
  find('message').className = `message ${kind}`
}

/** Shows one of the three states of the page, and moves the focus there: the button it was on may be gone. */
function show(state) {
  for (const id of ['sign-in', 'mail-sent', 'account']) find(id).hidden = id !== state
  find(state).querySelector('h2, input').focus()
}

function showMailSent(email) {
  find('address').textContent = email
  show('mail-sent')
}

function showSession(session) {
  find('claims').replaceChildren()
  form.elements.password.value = ''
  find('user').textContent = session?.user.email ?? ''
  show(session ? 'account' : 'sign-in')
}

/** Text nodes only: nothing that comes from outside becomes markup. */
function showClaims({ id, email, role, secondFactor, expiresAt }) {
  const rows = {
    'User id': id,
    'E-mail': email,
    Role: role,
    'Second factor': secondFactor ? 'proven' : 'not proven',
    'Token expires': new Date(expiresAt).toLocaleTimeString(),
  }
  const entries = Object.entries(rows).flatMap(([term, value]) => {
    const [title, text] = [document.createElement('dt'), document.createElement('dd')]
    title.textContent = term
    text.textContent = value
    return [title, text]
  })
  find('claims').replaceChildren(...entries)
}

// A code in the address has become a session by now, unless another browser asked for the mail.
const { error } = await auth.initialize()
if (error) say(explain(error), 'error')
else if (new URLSearchParams(location.search).has('code')) say('Your address is confirmed. Sign in with your password.')
history.replaceState(null, '', '/')

// A sign-in or sign-out in another tab arrives here too. The same session arrives again after a refresh, and when the
// tab is shown again; that changes nothing on the page.
let shownUserId
auth.onAuthStateChange((_event, session) => {
  const userId = session?.user.id ?? null
  if (userId === shownUserId) return
  shownUserId = userId
  showSession(session)
})
