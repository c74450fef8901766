// Button of a page between a link and its effect. A browser shows the answer to the last press: the second press of a
// double click would show that the link has expired. On return to the page the button works again. It waits half a
// second after its window appears. A double click that closes a window above with its first click would otherwise press
// it unread.
const button = /** @type {HTMLButtonElement} */ (document.querySelector('main button'))
let isPressed = false
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer

const wait = () => {
  button.disabled = true
  clearTimeout(timer)
  timer = setTimeout(() => {
    button.disabled = isPressed
  }, 500)
}

addEventListener('submit', () => {
  isPressed = true
  button.disabled = true
})
addEventListener('pageshow', () => {
  isPressed = false
  wait()
})
addEventListener('focus', wait)
