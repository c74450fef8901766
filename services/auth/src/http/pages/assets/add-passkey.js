// Makes a passkey when the button is pressed, and sends it with the form. The page holds the options of the service.
const place = /** @type {HTMLElement} */ (document.querySelector('#new-passkey'))
const form = /** @type {HTMLFormElement} */ (place.querySelector('form'))
const credential = /** @type {HTMLInputElement} */ (form.elements.namedItem('credential'))
const problem = /** @type {HTMLElement} */ (document.querySelector('#passkey-problem'))
const needsScript = /** @type {HTMLElement} */ (document.querySelector('#needs-script'))

needsScript.hidden = true
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  problem.hidden = true
  try {
    const options = JSON.parse(place.dataset.options ?? '')
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
    const made = /** @type {PublicKeyCredential} */ (await navigator.credentials.create({ publicKey }))
    credential.value = JSON.stringify(made.toJSON())
    form.submit()
  } catch {
    problem.hidden = false
  }
})
