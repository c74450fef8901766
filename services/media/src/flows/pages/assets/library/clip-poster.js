// Choice of the poster: the reader moves through the clip, and the picture at that moment is taken.
import { call, send } from '../owner/api.js'
import { data, text } from '../owner/page-data.js'
import { toast, toastFailure } from '../owner/toast.js'

/** Pauses between two questions whether a poster is made; after three minutes nothing asks. */
const FIRST_PAUSE_MS = 1_000
const LAST_PAUSE_MS = 60_000

/** @param {string} path */
export function startPoster(path) {
  const part = /** @type {HTMLDetailsElement} */ (document.getElementById('poster'))
  const range = /** @type {HTMLInputElement} */ (part.querySelector('input'))
  const output = /** @type {HTMLOutputElement} */ (part.querySelector('output'))
  const button = /** @type {HTMLButtonElement} */ (part.querySelector('button'))
  const video = document.createElement('video')
  Object.assign(video, { muted: true, playsInline: true, preload: 'auto' })
  const show = () => {
    video.currentTime = Number(range.value)
    output.value = `${Number(range.value).toFixed(2)} s`
    range.setAttribute('aria-valuetext', output.value)
  }
  part.addEventListener('toggle', () => {
    if (!part.open || video.isConnected) return
    video.src = part.dataset.mp4 ?? ''
    range.closest('label')?.before(video)
    show()
  })
  range.addEventListener('input', show)
  button.addEventListener('click', async () => {
    button.disabled = true
    try {
      await call(path, { method: 'PATCH', body: { poster_at: Number(range.value) } })
      toast(text('posterMaking'))
      void follow()
    } catch (error) {
      toastFailure(error)
    } finally {
      button.disabled = false
    }
  })

  let choices = 0
  /** Asks for the clip until its poster is made: the stream of events has no posters. */
  async function follow() {
    const choice = ++choices
    for (let pause = FIRST_PAUSE_MS; pause < LAST_PAUSE_MS; pause *= 1.5) {
      await new Promise((resolve) => setTimeout(resolve, pause))
      const answer = await call(path).catch(() => undefined)
      if (choice !== choices) return
      const change = answer?.body.poster.change
      if (!answer || change?.state === 'making') continue
      if (change) toastFailure(new Error(text('posterFailed')))
      else await showPoster().catch(toastFailure)
      return
    }
  }

  /** The card has the address of the poster, signed where it has to be. */
  async function showPoster() {
    const answer = await send(`library/cards?id=${data.id}`, { headers: { accept: 'text/html' } })
    const card = new DOMParser().parseFromString(await answer.text(), 'text/html')
    const image = card.querySelector('img')
    if (!image) return
    part.querySelector('img')?.remove()
    part.append(document.importNode(image, true))
    toast(text('posterMade'))
  }
}
