// Passkeys on a page. A button with `data-passkey` asks the browser for one and posts the answer in the fields of its
// form: `get` signs in, `create` registers. Without scripts the button stays hidden. The challenge is in the page
// (`data-challenge`), or behind an address (`data-options`).
/** @param {HTMLButtonElement} button */
async function challengeOf({ dataset: { challenge, options = '' } }) {
  if (challenge) return JSON.parse(challenge)
  const answer = await fetch(options, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
  if (!answer.ok) throw new Error(`options: ${answer.status}`)
  return answer.json()
}

/** @param {HTMLButtonElement} button */
async function ask(button) {
  const { challenge_id: id, options } = await challengeOf(button)
  const credential =
    button.dataset.passkey === 'create'
      ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
      : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) })
  return { challenge_id: id, credential: JSON.stringify(credential) }
}

/** @param {HTMLButtonElement} button */
function prepare(button) {
  const form = /** @type {HTMLFormElement} */ (button.form)
  const problem = /** @type {HTMLElement} */ (form.querySelector('[role="alert"]'))
  button.hidden = false
  form.querySelector('.needs-script')?.remove()
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    button.disabled = true
    problem.hidden = true
    try {
      for (const [name, value] of Object.entries(await ask(button))) {
        const field = /** @type {HTMLInputElement} */ (form.elements.namedItem(name))
        field.value = value
      }
      form.submit()
    } catch {
      problem.hidden = false
      button.disabled = false
    }
  })
}

// Without these a browser has no passkeys, or needs code that its passkeys are not worth.
if (globalThis.PublicKeyCredential?.parseCreationOptionsFromJSON) {
  for (const button of document.querySelectorAll('button[data-passkey]')) {
    prepare(/** @type {HTMLButtonElement} */ (button))
  }
}
