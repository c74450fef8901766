// Posts the one form of the page as soon as it is there.
const form = /** @type {HTMLFormElement} */ (document.querySelector('main form'))
form.requestSubmit()
